#include "apps/engine_options.hpp"

#include <sched.h>
#include <spdlog/fmt/fmt.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <fstream>
#include <string>
#include <thread>

#include "apps/size_text.hpp"

namespace helios::apps {

void add_quant_option(CLI::App& command, std::string& quant) {
  command
      .add_option("--quant", quant,
                  "Hold float matrices as q8_0, q4_1, q4_k or as they are: none (default: q8_0 of a folder)")
      ->check(CLI::IsMember({"none", "q8_0", "q4_1", "q4_k"}));
}

Result<std::optional<model::Quant>> quant_of(const std::string& text) {
  if (text.empty()) return std::optional<model::Quant>();
  const Result<model::Quant> quant = model::parse_quant(text);
  if (!quant) return quant.error();
  return std::optional(*quant);
}

void add_device_options(CLI::App& command, EngineOptions& options) {
  command.add_option("--threads", options.threads, "Compute threads (default: one per core)")
      ->check(CLI::Range(1, 1024));
  command.add_option("--memory", options.memory,
                     "Device memory for weights and caches, such as 512MiB "
                     "(default: 60% of free RAM)");
}

void add_engine_options(CLI::App& command, EngineOptions& options) {
  command.add_option("--exits", options.exits, "Exit heads of the first model (*.exits.safetensors)");
  add_quant_option(command, options.quant);
  command.add_option("--exit-layer", options.exit_layer, "Run and hold layers 1..E only (default: all)")
      ->check(CLI::PositiveNumber);
  command.add_option("--policy", options.policy, "full, or greedy: every token leaves at the exit layer")
      ->check(CLI::IsMember({"full", "greedy"}));
  add_device_options(command, options);
  command.add_option("--kv-type", options.kv_type, "Type of the KV cache")
      ->check(CLI::IsMember({"f16", "f32"}));
  command.add_option("--row-type", options.row_type, "Type of the residual rows kept for deepening")
      ->check(CLI::IsMember({"f16", "f32"}));
  command.add_option("--kernels", options.kernels, "fast, or reference (plain loops)")
      ->check(CLI::IsMember({"fast", "reference"}));
  command.add_option("--isa", options.isa,
                     "Newest instruction set to use: sse4, avx2, avx3, avx3_dl (default: the best here)");
  command.add_option("--max-running", options.max_running, "Sequences that run together")
      ->check(CLI::Range(1, 1024));
  command
      .add_option("--max-step-stretch", options.max_step_stretch,
                  "Bound of a step with decode rows, in predicted decode steps")
      ->check(CLI::Range(1.0, 100.0));
  command.add_flag("--adaptive,!--fixed-depth", options.adaptive,
                   "Load to the next exit when half of the last tokens were of low confidence (serve: on)");
  command.add_option("--trace", options.trace, "Write a Chrome/Perfetto trace to this file at the end");
  command.add_option("--log-format", options.log_format, "text or json")
      ->check(CLI::IsMember({"text", "json"}));
  command.add_option("--log-level", options.log_level, "debug, info, warning, error or off")
      ->check(CLI::IsMember({"debug", "info", "warning", "error", "off"}));
}

int available_threads() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) == 0) return std::max(1, CPU_COUNT(&set));
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

Result<std::uint64_t> arena_bytes(const EngineOptions& options) {
  if (!options.memory.empty()) {
    Result<std::uint64_t> size = parse_size(options.memory);
    if (!size) return fail(size.error().code, "--memory: " + size.error().message);
    return size;
  }
  std::ifstream meminfo("/proc/meminfo");
  std::string key, unit;
  std::uint64_t kilobytes = 0;
  while (meminfo >> key >> kilobytes >> unit) {
    if (key == "MemAvailable:") return kilobytes * 1024 / 10 * 6;
  }
  return fail(Errc::io_error, "cannot read the free memory from /proc/meminfo: set --memory");
}

Result<gpu::HostOptions> make_host_options(const EngineOptions& options) {
  const Result<std::uint64_t> bytes = arena_bytes(options);
  if (!bytes) return bytes.error();
  gpu::HostOptions host;
  host.arena_bytes = *bytes;
  host.threads = options.threads > 0 ? options.threads : available_threads();
  host.kernels = options.kernels == "reference" ? gpu::Kernels::reference : gpu::Kernels::fast;
  host.isa_limit = options.isa;
  return host;
}

Result<actors::ServerOptions> make_server_options(const EngineOptions& options) {
  actors::ServerOptions server;
  const Result<std::optional<model::Quant>> quant = quant_of(options.quant);
  if (!quant) return quant.error();
  for (const std::string& path : options.models) {
    actors::ModelOptions model;
    model.path = path;
    model.quant = *quant;
    if (server.models.empty()) model.exits_path = options.exits;
    if (options.exit_layer > 0) model.exit_layer = options.exit_layer;
    model.policy = options.policy;
    server.models.push_back(std::move(model));
  }
  server.kv_type = options.kv_type == "f32" ? gpu::DataType::f32 : gpu::DataType::f16;
  server.row_type = options.row_type == "f32" ? gpu::DataType::f32 : gpu::DataType::f16;
  server.max_running = options.max_running;
  server.limits.live_requests = std::max(server.limits.live_requests, 4 * options.max_running);
  server.max_step_stretch = options.max_step_stretch;
  server.adaptive = options.adaptive;
  return server;
}

}  // namespace helios::apps
