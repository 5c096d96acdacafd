#pragma once
#include <CLI/App.hpp>
#include <string>
#include <vector>

#include "actors/server.hpp"
#include "gpu/device.hpp"
#include "gpu/host_device.hpp"

namespace helios::apps {

/// What every subcommand that runs a model can set. Filled by CLI11; checked by make_server_options().
struct EngineOptions {
  std::vector<std::string> models;  // GGUF files or Hugging Face folders
  std::string quant;                // "" = q8_0 of a folder, a file as it is
  std::string exits;                // *.exits.safetensors of the first model
  int exit_layer = 0;               // 0 = all layers
  std::string policy;               // "" = greedy below full depth, else full
  int threads = 0;                  // 0 = one per core
  std::string memory;               // "" = 60% of free RAM
  std::string kv_type = "f16", row_type = "f16";
  std::string kernels = "fast";  // or reference
  std::string isa;               // "" = the best this machine has
  int max_running = 32;
  double max_step_stretch = 2.0;
  bool adaptive = false;              // serve: true
  std::string trace;                  // Chrome/Perfetto JSON file
  std::string log_format = "text";    // or json
  std::string log_level = "warning";  // serve: info
};

/// The help text of options that name a model.
inline constexpr const char* kModelHelp = "GGUF file, or a Hugging Face folder";

void add_quant_option(CLI::App& command, std::string& quant);
/// Of --quant; absent when it was not given. Errors: bad_request.
Result<std::optional<model::Quant>> quant_of(const std::string& text);

/// --threads and --memory, for subcommands that run a model without the server's options.
void add_device_options(CLI::App& command, EngineOptions& options);
void add_engine_options(CLI::App& command, EngineOptions& options);

/// Cores this process may run on.
int available_threads();

/// Bytes of the device arena: --memory, or 60% of the RAM that is free now.
Result<std::uint64_t> arena_bytes(const EngineOptions& options);

/// Without a tracer. Errors: those of arena_bytes.
Result<gpu::HostOptions> make_host_options(const EngineOptions& options);

Result<actors::ServerOptions> make_server_options(const EngineOptions& options);

}  // namespace helios::apps
