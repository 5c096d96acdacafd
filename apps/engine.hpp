#pragma once
#include <memory>

#include "actors/server.hpp"
#include "apps/engine_options.hpp"
#include "gpu/device.hpp"
#include "runtime/actor_system.hpp"
#include "runtime/metrics.hpp"
#include "runtime/thread_executor.hpp"
#include "runtime/trace.hpp"

namespace helios::apps {

/// Executor, device, actors and server of one process, wired in order and taken down in the reverse.
class Engine {
 public:
  /// Errors: those of Server::start, and of the options. Does not wait for the first layers.
  static Result<std::unique_ptr<Engine>> start(const EngineOptions& options);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  actors::Server& server() { return *server_; }
  gpu::Device& device() { return *device_; }
  runtime::ActorSystem& system() { return *system_; }
  runtime::ThreadExecutor& executor() { return *executor_; }
  runtime::Registry& metrics() { return *metrics_; }
  runtime::Tracer* tracer() { return tracer_.get(); }

 private:
  Engine() = default;
  std::string trace_path_;
  std::unique_ptr<runtime::Registry> metrics_;
  std::unique_ptr<runtime::Tracer> tracer_;
  std::unique_ptr<runtime::ThreadExecutor> executor_;
  std::unique_ptr<gpu::Device> device_;
  std::unique_ptr<runtime::ActorSystem> system_;
  std::unique_ptr<actors::Server> server_;
};

struct Answer {
  actors::Accepted accepted;
  actors::Finish finish;
};

/// Names of the models with random weights: reports that show figures of them say so.
std::vector<std::string> synthetic_models(actors::Server& server);

/// Runs one request to its end on the calling thread. on_chunk may be empty.
/// Errors: a refusal, or the request's own error.
Result<Answer> run_request(actors::Server& server, actors::GenerateRequest request,
                           const std::function<void(const actors::TextChunk&)>& on_chunk);

}  // namespace helios::apps
