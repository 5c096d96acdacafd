#pragma once
// One call wires the five actors of every model. `helios serve`, `generate`, `bench` and embedders all start
// here.

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/messages.hpp"
#include "actors/policy/residency.hpp"
#include "gpu/data_type.hpp"
#include "gpu/device.hpp"
#include "model/checkpoint.hpp"
#include "runtime/actor_system.hpp"
#include "runtime/metrics.hpp"
#include "runtime/trace.hpp"

namespace helios::actors {

struct ModelOptions {
  std::string path;                   // GGUF file or Hugging Face folder
  std::optional<model::Quant> quant;  // of float matrices; none = ModelFile's default
  std::string exits_path;             // *.exits.safetensors; "" = none
  std::string name;                   // "" = the file's stem, the folder's name
  std::optional<int> exit_layer;      // layers held at start; none = all
  std::string policy;                 // "" = greedy below full depth, else full
};

/// Bounds of what the server accepts. A request over one is refused with the bound in the message.
struct Limits {
  int live_requests = 256;                    // waiting and running
  std::int64_t live_prompt_tokens = 1 << 20;  // of all live requests
  std::size_t prompt_bytes = std::size_t{4} << 20;
  int stop_strings = 16;
  std::size_t stop_string_bytes = 256;
};

struct ServerOptions {
  std::vector<ModelOptions> models;
  gpu::DataType kv_type = gpu::DataType::f16;  // f16 or f32
  gpu::DataType row_type =
      gpu::DataType::f16;  // residual rows for catch-up: f16, or f32 for bit-exact catch-up
  Limits limits;
  int max_running = 32;               // sequences that decode or prefill together
  int step_rows_max = 256;            // rows of one step, all kinds
  double max_step_stretch = 2.0;      // a step with decode rows against the predicted decode step
  double breach_max = 0.5;            // share of the window that trips the counter
  int breach_window = 100;            // tokens, or 8 x running rows if that is more
  float confidence_threshold = 0.8F;  // where the exits file brings no calibrated one
  policy::Residency residency;        // least tokens and time between two decisions
  bool adaptive = true;               // greedy only: load to the next exit when the breach counter trips
  std::size_t stream_bytes = std::size_t{1} << 20;   // unread output of one request
  std::chrono::milliseconds write_deadline{10'000};  // a full stream for this long ends its request
  std::chrono::milliseconds step_deadline{120'000};  // a step slower than this is a device fault
};

/// A handle to the actors, which the ActorSystem owns. Its blocking calls are for plain threads, not for
/// strands.
class Server {
 public:
  /// Opens the files, plans memory and spawns the actors; loading starts at once and goes on behind.
  /// Errors: bad_file, io_error, out_of_memory, bad_request (an option), unsupported.
  static Result<std::unique_ptr<Server>> start(ServerOptions options, runtime::ActorSystem& system,
                                               gpu::Device& device, runtime::Registry* metrics = nullptr,
                                               runtime::Tracer* tracer = nullptr);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  RouterAddress router() const;

  // For plain threads (not on a strand): each blocks up to `timeout`.
  Result<Ready> wait_ready(std::chrono::milliseconds timeout);
  Result<Accepted> submit(GenerateRequest request, std::shared_ptr<TokenStream> stream,
                          std::chrono::milliseconds timeout);
  Result<Stats> stats(std::chrono::milliseconds timeout);
  Result<Depth> set_depth(std::string model, int layer, std::chrono::milliseconds timeout);
  Result<Drained> drain(std::chrono::milliseconds grace);

 private:
  struct Impl;
  explicit Server(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace helios::actors
