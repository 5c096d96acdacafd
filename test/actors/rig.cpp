#include "test/actors/rig.hpp"

#include "model/model_file.hpp"
#include "model/transformer.hpp"

namespace helios::test {

using namespace std::chrono_literals;

const std::string& tiny_model_path() {
  static const TempFile file(".gguf");
  static const bool written = (write_tiny_model(file.path()), true);
  (void)written;
  return file.path();
}

std::size_t tiny_arena_bytes(int tokens) {
  runtime::SimExecutor sim(1);
  auto device = gpu::VirtualDevice::create(sim, {.arena_bytes = std::size_t{256} << 20, .cost = {}});
  REQUIRE(device);
  auto file = model::ModelFile::open(tiny_model_path());
  REQUIRE(file);
  model::TransformerOptions options;
  options.kv_type = options.row_type = gpu::DataType::f32;
  options.keep_rows = false;
  options.max_rows = kRigStepRows;
  options.max_outputs = kRigRunning;
  auto transformer = model::Transformer::create(**device, *file, options);
  REQUIRE(transformer);
  std::size_t bytes = (*device)->budget().used() + model::global_device_bytes(**device, **file);
  const int layers = (*file)->config().layers;
  for (int layer = 0; layer < layers; ++layer) bytes += model::layer_device_bytes(**device, **file, layer);
  // What could_ever_fit() allows for slabs that are not filled, and a little more.
  const model::KvCache& cache = *(*transformer)->kv_cache();
  const std::size_t need = cache.sequence_bytes(tokens, layers);
  return bytes + need + need / 4 + 4 * cache.sequence_bytes(1, layers);
}

Rig::Rig(RigOptions options) : sim(options.seed) {
  gpu::VirtualOptions device_options = std::move(options.device);
  device_options.arena_bytes = options.arena_bytes;
  auto created = gpu::VirtualDevice::create(sim, std::move(device_options));
  REQUIRE(created);
  device = std::move(*created);
  system = std::make_unique<runtime::ActorSystem>(sim, &metrics);
  actors::ServerOptions server_options;
  server_options.models.push_back({.path = tiny_model_path(),
                                   .exits_path = "",
                                   .name = "tiny",
                                   .exit_layer = options.exit_layer,
                                   .policy = ""});
  server_options.kv_type = gpu::DataType::f32;
  server_options.row_type = gpu::DataType::f32;
  server_options.step_rows_max = kRigStepRows;
  server_options.max_running = kRigRunning;
  if (options.tweak) options.tweak(server_options);
  auto started = actors::Server::start(std::move(server_options), *system, *device, &metrics);
  if (!started) {
    start_error = started.error();
    return;
  }
  server = std::move(*started);
  strand_ = std::make_unique<runtime::Strand>(sim);
  clients_ = std::make_unique<runtime::AsyncScope>(*strand_);
  if (options.wait_ready) {
    const auto ready = server->wait_ready(60s);
    if (!ready) start_error = ready.error();
  }
}

Rig::~Rig() {
  if (clients_) clients_->destroy_children();
  clients_.reset();
  system->stop();
}

std::shared_ptr<Outcome> Rig::start(actors::GenerateRequest request, runtime::Duration delay,
                                    std::shared_ptr<actors::TokenStream> stream) {
  auto outcome = std::make_shared<Outcome>();
  if (!stream) stream = actors::TokenStream::create();
  REQUIRE(clients_->spawn(follow(outcome, std::move(request), delay, std::move(stream))));
  return outcome;
}

runtime::Task<> Rig::follow(std::shared_ptr<Outcome> outcome, actors::GenerateRequest request,
                            runtime::Duration delay, std::shared_ptr<actors::TokenStream> stream) {
  if (delay > runtime::Duration::zero()) (void)co_await runtime::sleep_for(sim, delay);
  actors::Submit submit;
  submit.request = std::move(request);
  submit.stream = stream;
  const actors::RouterAddress router = server->router();
  Result<actors::Accepted> accepted = co_await router.ask(std::move(submit), runtime::kNever);
  if (!accepted) {
    outcome->refused = accepted.error();
    co_return;
  }
  outcome->id = accepted->id;
  outcome->prompt_tokens = accepted->prompt_tokens;
  while (std::optional<actors::StreamEvent> event = co_await stream->next()) {
    if (outcome->finishes > 0) outcome->after_finish = true;
    if (auto* chunk = std::get_if<actors::TextChunk>(&*event)) {
      if (chunk->seq != ++outcome->last_seq) outcome->gap = true;
      outcome->text += chunk->text;
      outcome->times.push_back(sim.now());
      for (auto& token : chunk->tokens) outcome->tokens.push_back(std::move(token));
    } else {
      ++outcome->finishes;
      outcome->finish = std::get<actors::Finish>(std::move(*event));
    }
  }
}

Outcome Rig::run(actors::GenerateRequest request) {
  auto outcome = start(std::move(request));
  run_until([&] { return outcome->refused || outcome->finishes > 0; });
  return *outcome;
}

void Rig::cancel_at(std::shared_ptr<Outcome> outcome, runtime::Duration delay) {
  REQUIRE(clients_->spawn(cancel_later(std::move(outcome), delay)));
}

runtime::Task<> Rig::cancel_later(std::shared_ptr<Outcome> outcome, runtime::Duration delay) {
  (void)co_await runtime::sleep_for(sim, delay);
  if (outcome->id == 0) co_return;
  actors::Cancel cancel{outcome->id};
  (void)server->router().tell_urgent(cancel);
}

void Rig::run_until(const std::function<bool()>& done) {
  while (!done()) REQUIRE(sim.step());
}

actors::Stats Rig::stats() {
  auto stats = server->stats(10s);
  REQUIRE(stats);
  return *stats;
}

void Rig::check_balanced() {
  const actors::Stats now = stats();
  CHECK(now.live_requests == 0);
  CHECK(now.live_prompt_tokens == 0);
  for (const auto& model : now.models) {
    CHECK(model.running == 0);
    CHECK(model.waiting == 0);
    CHECK(model.blocks_used == 0);
  }
}

actors::GenerateRequest request_of(int n, int salt, int max_tokens) {
  actors::GenerateRequest request;
  actors::PromptIds ids;
  std::uint32_t state = 2463534242U + static_cast<std::uint32_t>(salt) * 7919U;
  for (int i = 0; i < n; ++i) {
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    ids.push_back(static_cast<std::int32_t>(3 + state % 60));
  }
  request.prompt = std::move(ids);
  request.sampling.temperature = 0;
  request.sampling.max_tokens = max_tokens;
  request.sampling.ignore_eos = true;
  return request;
}

}  // namespace helios::test
