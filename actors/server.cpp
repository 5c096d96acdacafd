#include "actors/server.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <filesystem>

#include "actors/layer_loader.hpp"
#include "actors/model_host.hpp"
#include "actors/policy/depth_choice.hpp"
#include "actors/profiler.hpp"
#include "actors/prompt_worker.hpp"
#include "actors/router.hpp"
#include "actors/scheduler.hpp"
#include "actors/text_stream.hpp"
#include "model/hf_model.hpp"
#include "model/model_file.hpp"
#include "model/transformer.hpp"
#include "runtime/sync_wait.hpp"

namespace helios::actors {

namespace {

Result<void> check_options(const ServerOptions& options) {
  if (options.models.empty())
    return fail(Errc::bad_request, "no model was named; give at least one GGUF file");
  if (options.max_running < 1 || options.max_running > 4096) {
    return fail(Errc::bad_request, fmt::format("max_running {} is outside 1..4096", options.max_running));
  }
  if (options.step_rows_max < options.max_running || options.step_rows_max > 16384) {
    return fail(Errc::bad_request,
                fmt::format("step_rows_max {} is outside {}..16384 (max_running rows must fit)",
                            options.step_rows_max, options.max_running));
  }
  if (!(options.max_step_stretch >= 1.0)) {
    return fail(Errc::bad_request, fmt::format("max_step_stretch {} is below 1", options.max_step_stretch));
  }
  return {};
}

/// One model's parts before the actors exist.
struct Opened {
  std::string name;
  std::string policy;   // as it was asked for; "": the host goes by its depth at each request
  bool greedy = false;  // at the start
  int exit_layer = 0;
  std::shared_ptr<const model::ModelFile> file;
  std::unique_ptr<model::Transformer> transformer;
};

/// A file's stem; a folder's whole name, which may have points ("Llama-3.2-1B").
std::string name_of(const std::string& path) {
  return model::is_hf_folder(path) ? model::folder_name(path) : std::filesystem::path(path).stem().string();
}

/// Models of one server may take over from each other, so a text must be the same ids in all of them.
Result<void> check_repository(const Opened& first, const Opened& other) {
  const model::Tokenizer &a = first.file->tokenizer(), &b = other.file->tokenizer();
  const char* differs = nullptr;
  if (a.vocab_hash() != b.vocab_hash()) {
    differs = "vocabulary";
  } else if (a.bos_id() != b.bos_id() || a.eos_id() != b.eos_id()) {
    differs = "begin or end token";
  }
  if (differs == nullptr) return {};
  return fail(
      Errc::bad_request,
      fmt::format("model '{}' has another {} than '{}' ({} and {} tokens): models served together must "
                  "share one, serve it apart",
                  other.name, differs, first.name, b.vocab_size(), a.vocab_size()));
}

/// Files only: nothing is reserved on the device.
Result<Opened> open_model(const ModelOptions& wanted) {
  auto file = model::ModelFile::open(wanted.path, wanted.exits_path, wanted.quant);
  if (!file) return file.error();
  Opened opened;
  opened.file = *file;
  opened.name = wanted.name.empty() ? name_of(wanted.path) : wanted.name;
  const int layers = opened.file->config().layers;
  opened.exit_layer = wanted.exit_layer.value_or(layers);
  const auto policy = policy::parse_policy(
      wanted.policy, opened.exit_layer < layers ? policy::Policy::greedy : policy::Policy::full);
  if (!policy) return policy.error();
  if (*policy == policy::Policy::full && wanted.exit_layer && opened.exit_layer < layers) {
    return fail(Errc::bad_request,
                fmt::format("policy 'full' runs all {} layers, exit_layer {} keeps fewer; drop one", layers,
                            opened.exit_layer));
  }
  opened.policy = wanted.policy;
  opened.greedy = *policy == policy::Policy::greedy;
  const auto exits = opened.file->exit_layers();
  const bool known = exits.empty() || opened.exit_layer == layers ||
                     std::find(exits.begin(), exits.end(), opened.exit_layer) != exits.end();
  if (opened.exit_layer < 1 || opened.exit_layer > layers || !known) {
    return fail(Errc::bad_request,
                known ? fmt::format("exit_layer {} is outside 1..{}", opened.exit_layer, layers)
                      : fmt::format("exit_layer {} is not an exit of this model; its exits are {} and {}",
                                    opened.exit_layer, fmt::join(exits, ", "), layers));
  }
  if (opened.exit_layer < layers && exits.empty()) {
    spdlog::warn(
        "model={} exit_layer={} of {} through the shared head: a model that was not trained for exits talks "
        "nonsense there",
        opened.name, opened.exit_layer, layers);
  }
  return opened;
}

Result<void> reserve(const ServerOptions& options, gpu::Device& device, Opened& opened) {
  model::TransformerOptions transformer;
  transformer.kv_type = options.kv_type;
  transformer.row_type = options.row_type;
  // At full depth nothing is left to catch up.
  transformer.keep_rows = opened.exit_layer < opened.file->config().layers;
  transformer.max_rows = options.step_rows_max;
  transformer.max_outputs = options.max_running;
  auto created = model::Transformer::create(device, opened.file, transformer);
  if (!created) return created.error();
  opened.transformer = std::move(*created);
  return {};
}

}  // namespace

struct Server::Impl {
  runtime::Executor* executor = nullptr;
  RouterAddress router;

  /// Sends a message with a reply and works or waits until it is answered.
  template <class Msg>
  auto ask(Msg message, runtime::Duration limit) -> Result<typename decltype(Msg::reply)::value_type> {
    return runtime::sync_wait(*executor, router.ask(std::move(message), limit));
  }
};

Server::Server(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Server::~Server() = default;

Result<std::unique_ptr<Server>> Server::start(ServerOptions options, runtime::ActorSystem& system,
                                              gpu::Device& device, runtime::Registry* metrics,
                                              runtime::Tracer* tracer) {
  if (const Result<void> valid = check_options(options); !valid) return valid.error();
  std::vector<Opened> models;
  for (const ModelOptions& wanted : options.models) {
    auto opened = open_model(wanted);
    if (!opened) return opened.error();
    for (const Opened& other : models) {
      if (other.name == opened->name) {
        return fail(Errc::bad_request,
                    fmt::format("two models are named '{}'; give one a name of its own", other.name));
      }
    }
    if (!models.empty()) {
      if (Result<void> ok = check_repository(models.front(), *opened); !ok) return ok.error();
    }
    if (const auto seed = opened->file->synthetic()) {
      spdlog::warn("model={} is synthetic (seed {}): random weights, for size and speed only", opened->name,
                   *seed);
    }
    models.push_back(std::move(*opened));
  }
  for (Opened& opened : models) {
    if (Result<void> ok = reserve(options, device, opened); !ok) return ok.error();
  }

  // Spawned from the bottom up: ActorSystem stops in reverse order, so whoever uses a peer stops before it.
  struct Wiring {
    runtime::ActorRef<Profiler> profiler;
    runtime::ActorRef<TextStream> text;
    runtime::ActorRef<LayerLoader> loader;
    runtime::ActorRef<Scheduler> scheduler;
    runtime::ActorRef<ModelHost> host;
  };
  std::vector<Wiring> wirings;
  RouterOptions router;
  for (Opened& opened : models) {
    const std::shared_ptr<const model::ModelFile> file = opened.file;
    const auto exits = file->exit_layers();
    const auto named = [&](const char* actor) {
      runtime::ActorOptions actor_options;
      actor_options.name =
          models.size() == 1 ? std::string(actor) : fmt::format("{}[{}]", actor, opened.name);
      return actor_options;
    };
    const int layers = file->config().layers;
    std::shared_ptr<model::KvCache> cache = opened.transformer->kv_cache();
    auto profiler = system.spawn<Profiler>(named("Profiler"),
                                           ProfilerOptions{.model_name = opened.name,
                                                           .layers = layers,
                                                           .exits = {exits.begin(), exits.end()},
                                                           .breach_window = options.breach_window,
                                                           .breach_max = options.breach_max,
                                                           .residency = options.residency,
                                                           .adaptive = options.adaptive && opened.greedy,
                                                           .metrics = metrics});
    auto text = system.spawn<TextStream>(named("TextStream"),
                                         TextStreamOptions{.model_name = opened.name,
                                                           .file = file,
                                                           .write_deadline = options.write_deadline,
                                                           .pending_bytes_max = options.stream_bytes,
                                                           .metrics = metrics});
    auto loader = system.spawn<LayerLoader>(
        named("LayerLoader"),
        LayerLoaderOptions{.model_name = opened.name, .file = file, .device = &device, .metrics = metrics});
    auto scheduler =
        system.spawn<Scheduler>(named("Scheduler"),
                                SchedulerOptions{.model_name = opened.name,
                                                 .file = file,
                                                 .max_running = options.max_running,
                                                 .rows_max = options.step_rows_max,
                                                 .stretch_max = options.max_step_stretch,
                                                 .confidence_threshold = options.confidence_threshold,
                                                 .keep_rows = opened.exit_layer < layers,
                                                 .metrics = metrics,
                                                 .tracer = tracer},
                                cache);
    auto host = system.spawn<ModelHost>(named("ModelHost"),
                                        ModelHostOptions{.model_name = opened.name,
                                                         .file = file,
                                                         .device = &device,
                                                         .exit_layer = opened.exit_layer,
                                                         .policy = opened.policy,
                                                         .step_deadline = options.step_deadline,
                                                         .metrics = metrics,
                                                         .tracer = tracer},
                                        std::move(opened.transformer));
    router.routes.push_back({opened.name, file, cache, opened.exit_layer, opened.policy,
                             host.address<Admit, Cancel, SetDepth, GetModelStats>()});
    wirings.push_back({profiler, text, loader, scheduler, host});
  }
  auto worker = system.spawn<PromptWorker>(runtime::ActorOptions{.name = "PromptWorker"});
  router.worker = worker.address<PreparePrompt>();
  router.bounds = {.live_requests_max = options.limits.live_requests,
                   .live_prompt_tokens_max = options.limits.live_prompt_tokens,
                   .prompt_bytes_max = options.limits.prompt_bytes,
                   .stop_strings_max = options.limits.stop_strings,
                   .stop_string_bytes_max = options.limits.stop_string_bytes};
  router.device = &device;
  router.metrics = metrics;
  auto router_ref = system.spawn<Router>(runtime::ActorOptions{.name = "Router"}, std::move(router));

  for (Wiring& w : wirings) {
    WireHost wire{.scheduler = w.scheduler.address<WireScheduler, Enqueue, Cancel, StepReport, DepthChanged,
                                                   Reclaim, GetSchedulerStats>(),
                  .loader = w.loader.address<WireLoader, LoadLayers>(),
                  .profiler = w.profiler.address<WireProfiler, DepthSettled, GetProfilerStats>(),
                  .router = router_ref.address<HostState>(),
                  .for_scheduler = {w.host.address<RunStep, LayersInUse>(),
                                    w.text.address<WireText, OpenText, StepText>(),
                                    w.profiler.address<StepSummary>(),
                                    {w.scheduler.address<StopText>(), router_ref.address<RequestDone>()}},
                  .for_loader = {w.host.address<LayerReady, GlobalsReady>()},
                  .for_profiler = {w.host.address<Deepen>()}};
    (void)w.host.address<WireHost>().tell(std::move(wire));
  }

  auto impl = std::make_unique<Impl>();
  impl->executor = &system.executor();
  impl->router = router_ref.address<Submit, Cancel, SetDepth, GetStats, Drain, WaitReady>();
  return std::unique_ptr<Server>(new Server(std::move(impl)));
}

RouterAddress Server::router() const {
  return impl_->router;
}

Result<Ready> Server::wait_ready(std::chrono::milliseconds timeout) {
  return impl_->ask(WaitReady{}, timeout);
}

Result<Accepted> Server::submit(GenerateRequest request, std::shared_ptr<TokenStream> stream,
                                std::chrono::milliseconds timeout) {
  Submit submit;
  submit.request = std::move(request);
  submit.stream = std::move(stream);
  return impl_->ask(std::move(submit), timeout);
}

Result<Stats> Server::stats(std::chrono::milliseconds timeout) {
  return impl_->ask(GetStats{}, timeout);
}

Result<Depth> Server::set_depth(std::string model, int layer, std::chrono::milliseconds timeout) {
  SetDepth set;
  set.model = std::move(model);
  set.layer = layer;
  return impl_->ask(std::move(set), timeout);
}

Result<Drained> Server::drain(std::chrono::milliseconds grace) {
  Drain drain;
  drain.deadline = impl_->executor->now() + grace;
  return impl_->ask(std::move(drain), grace + std::chrono::seconds(60));
}

}  // namespace helios::actors
