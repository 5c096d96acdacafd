#include "apps/engine.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>

#include "apps/size_text.hpp"
#include "gpu/host_device.hpp"

namespace helios::apps {

using namespace std::chrono_literals;

namespace {

constexpr int kActorThreads = 2;  // messages only: compute has its own threads

}  // namespace

Result<std::unique_ptr<Engine>> Engine::start(const EngineOptions& options) {
  Result<gpu::HostOptions> host = make_host_options(options);
  if (!host) return host.error();
  Result<actors::ServerOptions> server_options = make_server_options(options);
  if (!server_options) return server_options.error();

  std::unique_ptr<Engine> engine(new Engine);
  engine->trace_path_ = options.trace;
  engine->metrics_ = std::make_unique<runtime::Registry>();
  if (!options.trace.empty()) engine->tracer_ = std::make_unique<runtime::Tracer>();

  host->tracer = engine->tracer_.get();
  const std::size_t arena = host->arena_bytes;
  Result<std::unique_ptr<gpu::HostDevice>> device = gpu::HostDevice::create(std::move(*host));
  if (!device) return device.error();
  engine->device_ = std::move(*device);
  spdlog::info("device {} ({}), arena {}", engine->device_->name(), engine->device_->isa(),
               format_size(arena));

  engine->executor_ = std::make_unique<runtime::ThreadExecutor>(kActorThreads);
  engine->system_ = std::make_unique<runtime::ActorSystem>(*engine->executor_, engine->metrics_.get(),
                                                           engine->tracer_.get());
  Result<std::unique_ptr<actors::Server>> server =
      actors::Server::start(std::move(*server_options), *engine->system_, *engine->device_,
                            engine->metrics_.get(), engine->tracer_.get());
  if (!server) return server.error();
  engine->server_ = std::move(*server);
  return engine;
}

Engine::~Engine() {
  if (system_) system_->stop();
  server_.reset();
  system_.reset();
  device_.reset();
  executor_.reset();
  if (tracer_) {
    if (Result<void> written = tracer_->write_chrome_json(trace_path_); !written) {
      spdlog::error("trace {}: {}", trace_path_, written.error().message);
    }
  }
}

std::vector<std::string> synthetic_models(actors::Server& server) {
  std::vector<std::string> names;
  const Result<actors::Stats> stats = server.stats(10s);
  if (!stats) return names;
  for (const actors::ModelStats& model : stats->models) {
    if (model.synthetic) names.push_back(model.name);
  }
  return names;
}

Result<Answer> run_request(actors::Server& server, actors::GenerateRequest request,
                           const std::function<void(const actors::TextChunk&)>& on_chunk) {
  std::shared_ptr<actors::TokenStream> stream = actors::TokenStream::create();
  Result<actors::Accepted> accepted = server.submit(std::move(request), stream, 60s);
  if (!accepted) return accepted.error();
  for (;;) {
    std::optional<actors::StreamEvent> event = stream->wait_next(600s);
    if (!event) return fail(Errc::deadline_exceeded, "no token for ten minutes");
    if (auto* finish = std::get_if<actors::Finish>(&*event)) {
      if (finish->error) return *finish->error;
      return Answer{std::move(*accepted), std::move(*finish)};
    }
    if (on_chunk) on_chunk(std::get<actors::TextChunk>(*event));
  }
}

}  // namespace helios::apps
