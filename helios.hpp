#pragma once
// HELIOS in another program: link helios::helios, include this. It brings in neither Asio nor CUDA nor the
// actors; who wants to send messages to the actors instead includes helios/actors.hpp.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/result.hpp"

namespace helios {

struct EngineOptions {
  std::string model{};   // GGUF file
  std::string exits{};   // *.exits.safetensors with trained exit heads; "" = the model's own norm and head
  int exit_layer = 0;    // run and hold layers 1..exit_layer only; 0 = all
  std::string policy{};  // "full" or "greedy"; "" = greedy below full depth, else full
  std::uint64_t memory_bytes = 0;  // weights, caches, workspace; 0 = 60% of the RAM that is free now
  int threads = 0;                 // for compute; 0 = one per core this process may use
};

struct GenerateOptions {
  int max_tokens = 256;
  float temperature = 0;            // 0 takes the likeliest token
  std::uint64_t seed = 0;           // the same seed gives the same text whatever else the engine runs
  std::vector<std::string> stop{};  // ends before any of these
  bool raw = false;    // continue the text as it is, instead of as one user turn of the chat template
  int exit_layer = 0;  // for this answer, of the resident layers; 0 = the engine's
};

struct Answer {
  std::string text;
  std::vector<std::int32_t> token_ids;
  std::string finish_reason;  // "stop", "length" or "cancelled"
  int prompt_tokens = 0, completion_tokens = 0;
  double mean_depth = 0;              // layers run per token
  std::map<int, int> exit_histogram;  // depth -> tokens
  double ttft_ms = 0, tokens_per_s = 0;
};

/// One model, its actors and its device inside this process. All functions block and are thread-safe: answers
/// asked for from several threads run in one batch, and each is the same as if it ran alone.
class Engine {
 public:
  /// Returns when the model's first layers are on the device.
  /// Errors: bad_request (an option), io_error, bad_file, unsupported (the model), out_of_memory.
  static Result<std::unique_ptr<Engine>> start(EngineOptions options);
  ~Engine();  // ends running answers with `cancelled`
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// Answers one prompt. `on_text` is called on this thread with each piece, whole code points only, and may
  /// be empty. Errors: bad_request, too_long, no_model (a depth that is not resident), busy, device_fault.
  Result<Answer> generate(std::string prompt, GenerateOptions options = {},
                          const std::function<void(std::string_view)>& on_text = {});

  /// Makes layers 1..layer resident while answers go on; they go on at the new depth. Returns the layers
  /// resident. Errors: bad_request, out_of_memory, io_error.
  Result<int> load(int layer);

 private:
  struct Parts;
  explicit Engine(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace helios
