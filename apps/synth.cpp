// helios synth: a GGUF file of a published model's dimensions with random weights.

#include <spdlog/fmt/fmt.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "apps/commands.hpp"
#include "apps/progress_bar.hpp"
#include "apps/size_text.hpp"
#include "model/synthetic_model.hpp"
#include "model/synthetic_shapes.hpp"

namespace helios::apps {

namespace {

struct SynthOptions {
  std::string output, shape, quant = "q8_0";
  int layers = 0;  // 0: the shape's
  std::uint32_t seed = 0;
};

gpu::DataType type_of(const std::string& quant) {
  if (quant == "f16") return gpu::DataType::f16;
  if (quant == "q4_0") return gpu::DataType::q4_0;
  return quant == "q4_1" ? gpu::DataType::q4_1 : gpu::DataType::q8_0;
}

int run_synth(const SynthOptions& options) {
  const auto failed = [](const Error& error) {
    std::fprintf(stderr, "helios synth: %s\n", error.message.c_str());
    return 1;
  };
  Result<model::ModelConfig> shape = model::synthetic_shape(options.shape);
  if (!shape) return failed(shape.error());
  model::SyntheticOptions synthetic;
  synthetic.config = std::move(*shape);
  if (options.layers > 0) synthetic.config.layers = options.layers;
  synthetic.type = type_of(options.quant);
  synthetic.seed = options.seed;
  const Result<std::uint64_t> bytes = model::synthetic_bytes(synthetic);
  if (!bytes) return failed(bytes.error());
  {
    constexpr std::uint64_t kMiB = 1 << 20;
    ProgressBar progress("MiB", static_cast<std::size_t>(*bytes / kMiB));
    std::uint64_t shown = 0;
    synthetic.progress = [&](std::uint64_t done) {
      progress.advance(static_cast<std::size_t>(done / kMiB - shown));
      shown = done / kMiB;
    };
    if (Result<void> written = model::write_synthetic_model(options.output, synthetic); !written)
      return failed(written.error());
  }
  std::printf("%s: synthetic %s, %d layers, %s, seed %u, %s: random weights, for size and speed only\n",
              options.output.c_str(), options.shape.c_str(), synthetic.config.layers, options.quant.c_str(),
              options.seed, format_size(*bytes).c_str());
  return 0;
}

}  // namespace

void add_synth(CLI::App& program, Run& run) {
  auto options = std::make_shared<SynthOptions>();
  CLI::App* command =
      program.add_subcommand("synth", "Write a GGUF file of true dimensions with random weights");
  command->add_option("output", options->output, "File to write")->required();
  command->add_option("--shape", options->shape, "Dimensions of: " + model::synthetic_shape_names())
      ->required();
  command->add_option("--quant", options->quant, "Type of the matrices")
      ->check(CLI::IsMember({"q8_0", "q4_0", "q4_1", "f16"}));
  command->add_option("--layers", options->layers, "Layers (default: the shape's)")
      ->check(CLI::Range(1, 1024));
  command->add_option("--seed", options->seed, "Same seed, same bytes");
  command->callback([options, &run] { run = [options] { return run_synth(*options); }; });
}

}  // namespace helios::apps
