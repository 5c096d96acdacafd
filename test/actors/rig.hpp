#pragma once
// All five actors over the tiny model, in virtual time.

#include <catch2/catch_test_macros.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/server.hpp"
#include "gpu/virtual_device.hpp"
#include "runtime/actor_system.hpp"
#include "runtime/async_scope.hpp"
#include "runtime/metrics.hpp"
#include "runtime/sim_executor.hpp"
#include "runtime/sleep.hpp"
#include "runtime/strand.hpp"
#include "runtime/sync_wait.hpp"
#include "test/actors/print_result.hpp"
#include "test/support/tiny_model.hpp"

namespace helios::test {

inline constexpr int kRigStepRows = 64, kRigRunning = 32;

struct RigOptions {
  std::uint64_t seed = 1;
  std::optional<int> exit_layer = std::nullopt;
  std::size_t arena_bytes = std::size_t{64} << 20;
  gpu::VirtualOptions device = {};  // arena_bytes is taken from above
  std::function<void(actors::ServerOptions&)> tweak = {};
  bool wait_ready = true;
};

/// What became of one request.
struct Outcome {
  std::optional<Error> refused;
  actors::RequestId id = 0;
  int prompt_tokens = 0;
  std::string text;
  std::vector<actors::TokenInfo> tokens;  // of the chunks
  std::uint64_t last_seq = 0;
  bool gap = false;  // in seq
  int finishes = 0;
  bool after_finish = false;  // an event came after Finish
  actors::Finish finish;
  std::vector<runtime::TimePoint> times;  // of chunks

  const std::vector<std::int32_t>& ids() const { return finish.token_ids; }
};

class Rig {
 public:
  explicit Rig(RigOptions options = {});
  ~Rig();

  /// Starts a request at `delay` from now, reads its stream to the end. The outcome is complete when idle.
  std::shared_ptr<Outcome> start(actors::GenerateRequest request, runtime::Duration delay = {},
                                 std::shared_ptr<actors::TokenStream> stream = nullptr);
  /// start() and run until it ended.
  Outcome run(actors::GenerateRequest request);
  void cancel_at(std::shared_ptr<Outcome> outcome, runtime::Duration delay);
  /// Runs until nothing is left to do.
  void settle() { sim.run_until_idle(); }
  /// Runs until `done` or nothing is left; fails the test in the latter case.
  void run_until(const std::function<bool()>& done);
  actors::Stats stats();
  actors::ModelStats model_stats() { return stats().models.at(0); }
  /// Every block is free and nothing runs.
  void check_balanced();

  runtime::SimExecutor sim;
  runtime::Registry metrics;
  std::unique_ptr<gpu::VirtualDevice> device;
  std::unique_ptr<runtime::ActorSystem> system;
  std::unique_ptr<actors::Server> server;
  std::optional<Error> start_error;

 private:
  runtime::Task<> follow(std::shared_ptr<Outcome> outcome, actors::GenerateRequest request,
                         runtime::Duration delay, std::shared_ptr<actors::TokenStream> stream);
  runtime::Task<> cancel_later(std::shared_ptr<Outcome> outcome, runtime::Duration delay);
  std::unique_ptr<runtime::Strand> strand_;
  std::unique_ptr<runtime::AsyncScope> clients_;
};

/// The tiny model, written once a process.
const std::string& tiny_model_path();
/// Arena that holds all its layers, the workspace, and KV of about `tokens` tokens at full depth.
std::size_t tiny_arena_bytes(int tokens);

/// A prompt of `n` ids that depends on `salt`, greedy, `max_tokens` to make, eos ignored.
actors::GenerateRequest request_of(int n, int salt, int max_tokens);

}  // namespace helios::test
