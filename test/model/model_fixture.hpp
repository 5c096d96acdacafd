#pragma once
// A tiny model on a host device, ready to run.

#include <catch2/catch_test_macros.hpp>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>

#include "gpu/host_device.hpp"
#include "model/sequential.hpp"
#include "test/support/tiny_model.hpp"

namespace helios::test {

template <class T>
T must(Result<T> result) {
  if (!result) FAIL(result.error().message);
  return std::move(*result);
}
inline void must(const Result<void>& result) {
  if (!result) FAIL(result.error().message);
}

inline std::unique_ptr<gpu::HostDevice> make_device(std::size_t bytes,
                                                    gpu::Kernels kernels = gpu::Kernels::fast,
                                                    int threads = 1) {
  gpu::HostOptions options;
  options.arena_bytes = bytes;
  options.threads = threads;
  options.kernels = kernels;
  return must(gpu::HostDevice::create(options));
}

/// One model, with `depth` layers loaded.
struct Loaded {
  std::unique_ptr<gpu::HostDevice> device;
  std::shared_ptr<const model::ModelFile> file;
  std::unique_ptr<model::Transformer> transformer;

  static Loaded make(const std::string& path, int depth, const model::TransformerOptions& options,
                     gpu::Kernels kernels = gpu::Kernels::fast, std::size_t arena = std::size_t{64} << 20,
                     const std::string& exits = "", model::Quant quant = model::Quant::none) {
    Loaded l;
    l.device = make_device(arena, kernels);
    l.file = must(model::ModelFile::open(path, exits, quant));
    l.transformer = must(model::Transformer::create(*l.device, l.file, options));
    must(model::load_layers(*l.device, l.file, *l.transformer, depth));
    return l;
  }
};

inline model::Sampling greedy(int max_tokens) {
  model::Sampling sampling;
  sampling.max_tokens = max_tokens;
  return sampling;
}

inline std::vector<std::int32_t> some_ids(int count, int seed, int vocab = 320) {
  std::vector<std::int32_t> ids;
  std::uint32_t state = 0x9E3779B9U * static_cast<std::uint32_t>(seed + 1);
  for (int i = 0; i < count; ++i) {
    state = state * 1664525U + 1013904223U;
    ids.push_back(static_cast<std::int32_t>((state >> 8U) % static_cast<std::uint32_t>(vocab)));
  }
  return ids;
}

/// The real model. Without it says so aloud and ends the program as skipped: for programs whose every case
/// needs it.
inline std::string real_model() {
  const char* folder = std::getenv("HELIOS_MODELS_DIR");
  const std::filesystem::path path =
      std::filesystem::path(folder != nullptr ? folder : HELIOS_SOURCE_DIR "/models") /
      "SmolLM2-135M-Instruct.Q4_1.gguf";
  if (std::filesystem::exists(path)) return path.string();
  std::puts("SKIPPED: SmolLM2-135M-Instruct.Q4_1.gguf is not here; tools/get_model.sh fetches it");
  std::fflush(stdout);
  std::exit(77);  // SKIP_RETURN_CODE
}

}  // namespace helios::test
