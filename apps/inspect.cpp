// helios inspect: what a model file is, what it takes of a device, and what fits a budget. Loads nothing.

#include <spdlog/fmt/fmt.h>

#include <CLI/CLI.hpp>
#include <boost/json.hpp>
#include <cstdio>
#include <map>
#include <memory>

#include "apps/commands.hpp"
#include "apps/engine_options.hpp"
#include "apps/size_text.hpp"
#include "gpu/host_device.hpp"
#include "model/memory_plan.hpp"
#include "model/model_file.hpp"
#include "model/transformer.hpp"

namespace helios::apps {

namespace json = boost::json;

namespace {

struct InspectOptions {
  EngineOptions engine;
  std::string path;
  int tokens = 2048;  // of one sequence, for the count of sequences
  bool as_json = false;
};

struct ExitReport {
  int layer = 0;
  std::string kind;
  std::optional<float> threshold;
};

std::vector<ExitReport> exits_of(const model::ModelFile& file) {
  std::vector<ExitReport> reports;
  if (file.exits() == nullptr) return reports;
  for (const model::ExitHead& head : file.exits()->heads()) {
    std::string kind;
    if (head.adapter_weight) kind += "adapter ";
    if (head.block) kind += "block ";
    if (head.norm) kind += "norm ";
    if (head.head) kind += "head ";
    if (kind.empty()) kind = "shared ";
    kind.pop_back();
    reports.push_back({head.layer, kind, head.threshold});
  }
  return reports;
}

/// Bytes in the files by type, and what matrices are held as: "F16 as Q8_0".
std::map<std::string, std::size_t> types_of(const model::ModelFile& file) {
  std::map<std::string, std::size_t> types;
  for (const model::StoredTensor& tensor : file.checkpoint().tensors()) {
    std::string name(gpu::to_string(tensor.type));
    if (tensor.held != tensor.type) name += fmt::format(" as {}", gpu::to_string(tensor.held));
    types[name] += static_cast<std::size_t>(tensor.bytes);
  }
  return types;
}

json::object to_json(const model::ModelFile& file, const model::MemoryPlan& plan, std::uint64_t budget,
                     int depth, int tokens) {
  const model::ModelConfig& c = file.config();
  json::array layers, exits;
  for (int layer = 0; layer < c.layers; ++layer) {
    layers.push_back({{"layer", layer + 1},
                      {"file_bytes", file.layer_bytes(layer)},
                      {"device_bytes", plan.layer_bytes[static_cast<std::size_t>(layer)]}});
  }
  for (const ExitReport& exit : exits_of(file)) {
    json::object entry{{"layer", exit.layer}, {"parts", exit.kind}};
    if (exit.threshold) entry["threshold"] = *exit.threshold;
    exits.push_back(std::move(entry));
  }
  json::object out{{"path", file.path()},
                   {"architecture", c.architecture},
                   {"name", c.name},
                   {"layers", c.layers},
                   {"hidden", c.hidden},
                   {"feed_forward", c.feed_forward},
                   {"heads", c.heads},
                   {"kv_heads", c.kv_heads},
                   {"head_dim", c.head_dim},
                   {"vocab", c.vocab},
                   {"context", c.context},
                   {"tied_head", c.tied_head},
                   {"quant", model::to_string(file.quant())},
                   {"types", json::value_from(types_of(file))},
                   {"bytes_per_layer", std::move(layers)},
                   {"global_bytes", plan.global_bytes},
                   {"head_bytes", plan.head_bytes},
                   {"workspace_bytes", plan.workspace_bytes},
                   {"kv_bytes_per_token_layer", plan.kv_bytes_per_token_layer},
                   {"kv_bytes_per_token", plan.kv_bytes_per_token_layer * static_cast<std::size_t>(depth)},
                   {"row_bytes_per_token", plan.row_bytes_per_token},
                   {"exits", std::move(exits)},
                   {"plan",
                    {{"budget_bytes", budget},
                     {"depth", depth},
                     {"weight_bytes", plan.weight_bytes(depth)},
                     {"token_bytes", plan.token_bytes(depth)},
                     {"tokens_max", plan.max_tokens(budget, depth)},
                     {"sequence_tokens", tokens},
                     {"sequences_max", plan.max_sequences(budget, tokens, depth)},
                     {"depth_max", plan.max_depth(budget, tokens)}}}};
  if (file.synthetic()) out["synthetic"] = *file.synthetic();
  return out;
}

void print_text(const model::ModelFile& file, const model::MemoryPlan& plan, std::uint64_t budget,
                int depth) {
  const model::ModelConfig& c = file.config();
  std::printf(
      "%s\n  %s%s%s: %d layers, hidden %lld, feed-forward %lld, heads %d/%d of %d, vocabulary %lld, context "
      "%d%s\n",
      file.path().c_str(), c.architecture.c_str(), c.name.empty() ? "" : ", ", c.name.c_str(), c.layers,
      static_cast<long long>(c.hidden), static_cast<long long>(c.feed_forward), c.heads, c.kv_heads,
      c.head_dim, static_cast<long long>(c.vocab), c.context, c.tied_head ? ", tied head" : "");
  if (file.synthetic()) {
    std::printf("  synthetic: random weights (seed %llu), for size and speed only\n",
                static_cast<unsigned long long>(*file.synthetic()));
  }
  std::printf("  weights:");
  for (const auto& [type, bytes] : types_of(file))
    std::printf(" %s %s;", type.c_str(), format_size(bytes).c_str());
  std::printf(" quant %s\n", std::string(model::to_string(file.quant())).c_str());
  if (const model::Sampling* s = file.suggested_sampling()) {
    std::printf(
        "  its makers sample with: temperature %g, top-k %d, top-p %g, min-p %g, repetition penalty %g\n",
        s->temperature, s->top_k, s->top_p, s->min_p, s->repetition_penalty);
  }
  if (file.chat_template() == nullptr) {
    std::printf("  chat template: none (%s)\n",
                file.chat_template_error().empty() ? "not in the file" : file.chat_template_error().c_str());
  }
  std::printf("  KV per token: %zu bytes a layer, %zu at depth %d; residual row %zu\n",
              plan.kv_bytes_per_token_layer, plan.kv_bytes_per_token_layer * static_cast<std::size_t>(depth),
              depth, plan.row_bytes_per_token);
  std::printf("  embedding, norm, head, exits: %s (head %s)\n", format_size(plan.global_bytes).c_str(),
              format_size(plan.head_bytes).c_str());
  for (int first = 0; first < c.layers;) {  // runs of equal layers on one line
    int last = first;
    const std::size_t bytes = plan.layer_bytes[static_cast<std::size_t>(first)];
    while (last + 1 < c.layers && plan.layer_bytes[static_cast<std::size_t>(last + 1)] == bytes) ++last;
    std::printf("  layers %d-%d: %zu bytes each on the device, %zu in the file\n", first + 1, last + 1, bytes,
                file.layer_bytes(first));
    first = last + 1;
  }
  const std::vector<ExitReport> exits = exits_of(file);
  if (exits.empty())
    std::printf("  exits: no trained heads; any layer through the model's own norm and head\n");
  for (const ExitReport& exit : exits) {
    std::printf(
        "  exit %d: %s%s\n", exit.layer, exit.kind.c_str(),
        exit.threshold ? fmt::format(", threshold {:.3f}", *exit.threshold).c_str() : ", uncalibrated");
  }
  std::printf("%s\n", plan.explain(budget, depth).c_str());
}

int run_inspect(const InspectOptions& options) {
  const auto failed = [](const Error& error) {
    std::fprintf(stderr, "helios inspect: %s\n", error.message.c_str());
    return 1;
  };
  const Result<std::optional<model::Quant>> quant = quant_of(options.engine.quant);
  if (!quant) return failed(quant.error());
  Result<std::shared_ptr<const model::ModelFile>> file =
      model::ModelFile::open(options.path, options.engine.exits, *quant);
  if (!file) return failed(file.error());
  const int layers = (*file)->config().layers;
  if (options.engine.exit_layer > layers) {
    return failed(fail(Errc::bad_request, fmt::format("--exit-layer {}: the model has {} layers",
                                                      options.engine.exit_layer, layers)));
  }
  const int depth = options.engine.exit_layer > 0 ? options.engine.exit_layer : layers;
  Result<std::uint64_t> budget = arena_bytes(options.engine);
  if (!budget) return failed(budget.error());
  constexpr std::size_t kNothingIsLoaded = 4096;
  Result<std::unique_ptr<gpu::HostDevice>> device =
      gpu::HostDevice::create({.arena_bytes = kNothingIsLoaded});
  if (!device) return failed(device.error());
  model::TransformerOptions transformer;
  transformer.kv_type = options.engine.kv_type == "f32" ? gpu::DataType::f32 : gpu::DataType::f16;
  transformer.row_type = options.engine.row_type == "f32" ? gpu::DataType::f32 : gpu::DataType::f16;
  const model::MemoryPlan plan = model::MemoryPlan::make(**device, **file, transformer);
  if (options.as_json) {
    std::printf("%s\n", json::serialize(to_json(**file, plan, *budget, depth, options.tokens)).c_str());
  } else {
    print_text(**file, plan, *budget, depth);
  }
  return 0;
}

}  // namespace

void add_inspect(CLI::App& program, Run& run) {
  auto options = std::make_shared<InspectOptions>();
  CLI::App* command =
      program.add_subcommand("inspect", "Print a model's shape, bytes, exits and memory plan");
  command->add_option("file", options->path, kModelHelp)->required();
  add_quant_option(*command, options->engine.quant);
  command->add_option("--exits", options->engine.exits, "Exit heads (*.exits.safetensors)");
  command->add_option("--exit-layer", options->engine.exit_layer, "Depth of the plan (default: all layers)")
      ->check(CLI::PositiveNumber);
  command->add_option("--memory", options->engine.memory,
                      "Budget of the plan, such as 512MiB (default: 60% of free RAM)");
  command->add_option("--tokens", options->tokens, "Length of the sequences to count")
      ->check(CLI::PositiveNumber);
  command->add_option("--kv-type", options->engine.kv_type, "Type of the KV cache")
      ->check(CLI::IsMember({"f16", "f32"}));
  command->add_option("--row-type", options->engine.row_type, "Type of residual rows")
      ->check(CLI::IsMember({"f16", "f32"}));
  command->add_flag("--json", options->as_json, "One JSON object on stdout");
  command->callback([options, &run] { run = [options] { return run_inspect(*options); }; });
}

}  // namespace helios::apps
