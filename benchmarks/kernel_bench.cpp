// Speed of the host's matrix products on shapes of SmolLM2-135M and Qwen2.5 1.5B: one JSON line per (type,
// shape, rows). kernel_bench [--quick] [--threads N] [--isa NAME] [--fine TENTHS]
// --fine: how many of ten blocks of the activations are fine (gpu/activation.hpp), 0 when not given.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "gpu/host_device.hpp"

namespace {

using namespace helios;
using Seconds = std::chrono::duration<double>;

struct Shape {
  const char* name;
  gpu::DataType type;
  std::int64_t rows, cols;
};

constexpr Shape kShapes[] = {{"gate_up", gpu::DataType::q4_1, 3072, 576},
                             {"down", gpu::DataType::q4_1, 576, 1536},
                             {"head", gpu::DataType::q8_0, 49152, 576}};
// One matrix of Qwen2.5 1.5B's feed-forward, in each packed type.
constexpr Shape kQwenShapes[] = {{"up", gpu::DataType::q4_1, 8960, 1536},
                                 {"up", gpu::DataType::q5_1, 8960, 1536},
                                 {"up", gpu::DataType::q6_k, 8960, 1536},
                                 {"up", gpu::DataType::q8_0, 8960, 1536}};

/// The best of a few timings of `repeats` products over copies of the weights too large for the caches.
void measure(gpu::HostDevice& device, const Shape& shape, std::int64_t m, bool quick, int fine) {
  const std::size_t bytes = device.packed_bytes(shape.type, shape.rows, shape.cols);
  const std::size_t copies = quick ? 1 : std::max<std::size_t>((std::size_t{192} << 20) / bytes, 1);
  const gpu::Slab weights = device.budget().reserve(bytes * copies, gpu::Use::weights).value();
  std::memset(weights.data(), 0, weights.size());
  const gpu::Slab input =
      device.budget().reserve(device.activation_bytes(m, shape.cols), gpu::Use::workspace).value();
  std::memset(input.data(), 0, input.size());
  std::vector<float> out(static_cast<std::size_t>(m * shape.rows));
  const gpu::Activation in{input.data(), m, shape.cols};
  for (std::int64_t row = 0; row < m; ++row) {
    for (std::int64_t b = 0; b < shape.cols / 32; ++b) {
      gpu::tile_blocks(in, row)[b].fine[row % gpu::kTileRows] = b % 10 < fine ? 1 : 0;
    }
  }
  const auto stream = device.create_stream(gpu::StreamKind::compute).value();
  gpu::CommandList program;
  for (std::size_t i = 0; i < std::min<std::size_t>(copies, 128); ++i) {
    gpu::MatMul op{.in = in, .rows = m};
    op.add(device.matrix_view(shape.type, shape.rows, shape.cols, weights.data() + i * bytes), out.data(),
           shape.rows);
    program.emplace_back(op);
  }
  double best = 1e9;
  for (int run = 0; run < (quick ? 1 : 5); ++run) {
    const auto start = std::chrono::steady_clock::now();
    if (!stream->launch(program)) std::abort();
    if (!stream->record().wait_for(std::chrono::minutes(2))) std::abort();
    const double time = Seconds(std::chrono::steady_clock::now() - start).count();
    best = std::min(best, time / static_cast<double>(program.size()));
  }
  const double operations = 2.0 * static_cast<double>(m * shape.rows * shape.cols);
  std::printf(
      R"({"isa":"%s","op":"%s","type":"%s","rows":%d,"fine_tenths":%d,"us":%.1f,"gop_s":%.0f,"gb_s":%.1f})"
      "\n",
      std::string(device.isa()).c_str(), shape.name, std::string(to_string(shape.type)).c_str(),
      static_cast<int>(m), fine, best * 1e6, operations / best * 1e-9,
      static_cast<double>(bytes) / best * 1e-9);
}

}  // namespace

int main(int argc, char** argv) {
  bool quick = false;
  int fine = 0;
  gpu::HostOptions options{
      .arena_bytes = std::size_t{512} << 20,
      .threads = static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1U, 64U))};
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    if (flag == "--quick") quick = true;
    if (flag == "--threads" && i + 1 < argc) options.threads = std::atoi(argv[++i]);
    if (flag == "--isa" && i + 1 < argc) options.isa_limit = argv[++i];
    if (flag == "--fine" && i + 1 < argc) fine = std::atoi(argv[++i]);
  }
  auto device = gpu::HostDevice::create(options);
  if (!device) {
    std::fprintf(stderr, "%s\n", device.error().message.c_str());
    return 1;
  }
  const auto measure_all = [&](std::span<const Shape> shapes) {
    for (const Shape& shape : shapes) {
      for (const std::int64_t m : {1, 4, 16, 64}) measure(**device, shape, m, quick, fine);
    }
  };
  measure_all(kShapes);
  measure_all(kQwenShapes);
  return 0;
}
