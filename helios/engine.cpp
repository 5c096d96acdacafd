#include <algorithm>
#include <fstream>
#include <thread>
#include <utility>

#include "helios.hpp"
#include "helios/actors.hpp"

#if defined(__linux__)
#include <sched.h>
#endif

namespace helios {

using namespace std::chrono_literals;

namespace {

constexpr int kActorThreads = 2;     // messages only: compute has its own threads
constexpr auto kLoadTimeout = 600s;  // the first layers, or deeper ones, of a slow disk
constexpr auto kAdmitTimeout = 60s;
constexpr auto kTokenTimeout = 600s;  // between two pieces of one answer
constexpr auto kDrainGrace = 0ms;

int usable_cores() {
#if defined(__linux__)
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) == 0) return std::max(1, CPU_COUNT(&set));
#endif
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

/// 60% of the RAM that is free now.
Result<std::uint64_t> default_memory() {
  std::ifstream meminfo("/proc/meminfo");
  std::string key, unit;
  std::uint64_t kilobytes = 0;
  while (meminfo >> key >> kilobytes >> unit) {
    if (key == "MemAvailable:") return kilobytes * 1024 / 10 * 6;
  }
  return fail(Errc::io_error,
              "cannot read the free memory from /proc/meminfo: set EngineOptions::memory_bytes");
}

Answer to_answer(actors::Finish finish, std::string text) {
  Answer answer;
  answer.text = std::move(text);
  answer.token_ids = std::move(finish.token_ids);
  answer.finish_reason = actors::to_string(finish.reason);
  answer.prompt_tokens = finish.usage.prompt_tokens;
  answer.completion_tokens = finish.usage.completion_tokens;
  answer.mean_depth = finish.usage.mean_depth;
  answer.exit_histogram = std::move(finish.usage.exit_histogram);
  answer.ttft_ms = finish.ttft_ms;
  answer.tokens_per_s = finish.tokens_per_s;
  return answer;
}

}  // namespace

struct Engine::Parts {
  // In the order in which they are made; taken down in the reverse, after the actors have stopped.
  std::unique_ptr<runtime::ThreadExecutor> executor;
  std::unique_ptr<gpu::Device> device;
  std::unique_ptr<runtime::ActorSystem> system;
  std::unique_ptr<actors::Server> server;
};

Engine::Engine(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

Result<std::unique_ptr<Engine>> Engine::start(EngineOptions options) {
  const Result<std::uint64_t> memory =
      options.memory_bytes > 0 ? Result<std::uint64_t>(options.memory_bytes) : default_memory();
  if (!memory) return memory.error();
  if (options.exit_layer < 0 || options.threads < 0) {
    return fail(Errc::bad_request, "EngineOptions: exit_layer and threads are 0 (the default) or positive");
  }

  std::unique_ptr<Engine> engine(new Engine(std::make_unique<Parts>()));
  Parts& parts = *engine->parts_;
  gpu::HostOptions host;
  host.arena_bytes = *memory;
  host.threads = options.threads > 0 ? options.threads : usable_cores();
  Result<std::unique_ptr<gpu::HostDevice>> device = gpu::HostDevice::create(std::move(host));
  if (!device) return device.error();
  parts.device = std::move(*device);
  parts.executor = std::make_unique<runtime::ThreadExecutor>(kActorThreads);
  parts.system = std::make_unique<runtime::ActorSystem>(*parts.executor);

  actors::ModelOptions model;
  model.path = std::move(options.model);
  model.exits_path = std::move(options.exits);
  if (options.exit_layer > 0) model.exit_layer = options.exit_layer;
  model.policy = std::move(options.policy);
  actors::ServerOptions server_options;
  server_options.models.push_back(std::move(model));
  Result<std::unique_ptr<actors::Server>> server =
      actors::Server::start(std::move(server_options), *parts.system, *parts.device);
  if (!server) return server.error();
  parts.server = std::move(*server);
  if (Result<actors::Ready> ready = parts.server->wait_ready(kLoadTimeout); !ready) return ready.error();
  return engine;
}

Engine::~Engine() {
  if (parts_->server) (void)parts_->server->drain(kDrainGrace);
  if (parts_->system) parts_->system->stop();
}

Result<Answer> Engine::generate(std::string prompt, GenerateOptions options,
                                const std::function<void(std::string_view)>& on_text) {
  actors::GenerateRequest request;
  request.prompt = std::move(prompt);
  request.raw = options.raw;
  request.sampling.max_tokens = options.max_tokens;
  request.sampling.temperature = options.temperature;
  request.sampling.seed = options.seed;
  request.sampling.stop = std::move(options.stop);
  if (options.exit_layer != 0) request.exit_layer = options.exit_layer;

  const std::shared_ptr<actors::TokenStream> stream = actors::TokenStream::create();
  const Result<actors::Accepted> accepted = parts_->server->submit(std::move(request), stream, kAdmitTimeout);
  if (!accepted) return accepted.error();
  std::string text;
  for (;;) {
    std::optional<actors::StreamEvent> event = stream->wait_next(kTokenTimeout);
    if (!event) {
      stream->abandon();
      return fail(Errc::deadline_exceeded, "no token within ten minutes");
    }
    if (auto* finish = std::get_if<actors::Finish>(&*event)) {
      if (finish->error) return std::move(*finish->error);
      return to_answer(std::move(*finish), std::move(text));
    }
    const std::string& piece = std::get<actors::TextChunk>(*event).text;
    text += piece;
    if (on_text && !piece.empty()) on_text(piece);
  }
}

Result<int> Engine::load(int layer) {
  const Result<actors::Depth> depth = parts_->server->set_depth("", layer, kLoadTimeout);
  if (!depth) return depth.error();
  return depth->resident;
}

}  // namespace helios
