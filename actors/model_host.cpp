#include "actors/model_host.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>

#include "actors/policy/depth_choice.hpp"

namespace helios::actors {

namespace {

constexpr std::size_t kDepthWaitersMax = 64;
constexpr int kReclaimsMax = 256;
constexpr std::chrono::minutes kLoadDeadline{60};  // a whole range; each layer has its own, shorter one

double ms_of(runtime::Duration d) {
  return std::chrono::duration<double, std::milli>(d).count();
}

}  // namespace

ModelHost::ModelHost(ModelHostOptions options, std::unique_ptr<model::Transformer> transformer)
    : options_(std::move(options)),
      transformer_(std::move(transformer)),
      depth_(options_.exit_layer),
      wanted_(options_.exit_layer),
      layer_load_ms_(static_cast<std::size_t>(options_.file->config().layers), 0.0),
      layer_bytes_(layer_load_ms_.size(), 0) {
  if (options_.tracer != nullptr) trace_track_ = options_.tracer->track("steps/" + options_.model_name);
}

ModelHost::~ModelHost() = default;

runtime::Task<> ModelHost::on(WireHost msg) {
  wire_ = std::move(msg);
  WireScheduler scheduler = wire_->for_scheduler;
  (void)wire_->scheduler.tell_urgent(std::move(scheduler));
  WireLoader loader = wire_->for_loader;
  (void)wire_->loader.tell_urgent(std::move(loader));
  WireProfiler profiler = wire_->for_profiler;
  (void)wire_->profiler.tell_urgent(std::move(profiler));
  tell_depth();
  want_depth(depth_);
  co_return;
}

runtime::Task<> ModelHost::on(Admit msg) {
  if (broken_ || !wire_) {
    msg.reply.fail(broken_ ? *broken_ : fail(Errc::busy, "the model is being set up: retry"));
    co_return;
  }
  const int layers = options_.file->config().layers;
  const auto fallback =
      policy::parse_policy(options_.policy, depth_ < layers ? policy::Policy::greedy : policy::Policy::full);
  if (!fallback) {
    msg.reply.fail(fallback.error());
    co_return;
  }
  const auto named = policy::parse_policy(msg.policy, *fallback);
  if (!named) {
    msg.reply.fail(named.error());
    co_return;
  }
  const std::vector<int> exits = options_.file->exit_layers();
  const policy::DepthOffer offer{.layers = layers, .depth = depth_, .feasible = depth_, .exits = exits};
  const auto choice = policy::choose_depth(offer, msg.exit_layer, *named, msg.policy_named);
  if (!choice) {
    msg.reply.fail(choice.error());
    co_return;
  }
  Enqueue enqueue{std::move(msg), choice->depth, !choice->pinned};
  (void)co_await wire_->scheduler.send(
      std::move(enqueue));  // when it fails the reply is dropped, which answers
}

runtime::Task<> ModelHost::on(Cancel msg) {
  if (wire_) (void)wire_->scheduler.tell_urgent(msg);
  co_return;
}

Result<void> ModelHost::check_depth(int layer) const {
  const int layers = options_.file->config().layers;
  if (layer < 1 || layer > layers) {
    return fail(Errc::bad_request, fmt::format("layer {} is outside 1..{}", layer, layers));
  }
  const auto exits = options_.file->exit_layers();
  if (!exits.empty() && layer != layers && std::find(exits.begin(), exits.end(), layer) == exits.end()) {
    return fail(Errc::bad_request,
                fmt::format("layer {} is not an exit of this model; its exits are {} and {}", layer,
                            fmt::join(exits, ", "), layers));
  }
  return {};
}

runtime::Task<> ModelHost::on(SetDepth msg) {
  if (broken_) {
    msg.reply.fail(*broken_);
    co_return;
  }
  if (const Result<void> valid = check_depth(msg.layer); !valid) {
    msg.reply.fail(valid.error());
    co_return;
  }
  if (waiters_.size() >= kDepthWaitersMax) {
    msg.reply.fail(fail(Errc::busy, fmt::format("{} loads are waiting; retry later", waiters_.size())));
    co_return;
  }
  if (ready_ && msg.layer < depth_) {
    spdlog::info("host model={} depth={} was={} reason=asked (new sequences only)", options_.model_name,
                 msg.layer, depth_);
    load_cancel_.cancel();
    depth_ = wanted_ = msg.layer;
    tell_depth();
    drop_unused();
    msg.reply.send(Depth{resident()});
    DepthSettled settled{depth_, {}, true};
    if (wire_) (void)wire_->profiler.tell(settled);
    co_return;
  }
  const int layer = msg.layer;
  waiters_.push_back({layer, std::move(msg.reply)});
  want_depth(layer);
}

runtime::Task<> ModelHost::on(Deepen msg) {
  if (!broken_ && check_depth(msg.layer)) want_depth(msg.layer);
  co_return;
}

/// Starts or extends the load; settles at once when the layers are here already.
void ModelHost::want_depth(int layer) {
  wanted_ = std::max(wanted_, layer);
  if (!wire_ || loading_ || stopping_) return;  // wiring calls again
  if (globals_promised_ && promised_ >= wanted_) {
    settle();
    return;
  }
  loading_ = true;
  load_error_.reset();
  load_cancel_ = runtime::CancelSource();
  load_started_ = now();
  scope().spawn(load_to_wanted());
}

runtime::Task<> ModelHost::load_to_wanted() {
  int reclaims = 0;
  while (!stopping_ && !load_error_ && !(globals_promised_ && promised_ >= wanted_)) {
    LoadLayers load;
    load.first = promised_;
    load.last = wanted_;
    load.globals = !globals_promised_;
    load.cancel = load_cancel_.token();
    const runtime::TimePoint deadline = now() + kLoadDeadline;
    Result<LayersLoaded> loaded = co_await wire_->loader.ask(std::move(load), deadline);
    if (!loaded) {
      load_error_ = loaded.error();
      break;
    }
    promised_ = std::max(promised_, loaded->loaded_to);
    globals_promised_ = globals_promised_ || loaded->globals;
    if (!loaded->error) continue;
    if (loaded->error->code != Errc::out_of_memory || ++reclaims > kReclaimsMax) {
      load_error_ = loaded->error;
      break;
    }
    // Weights come before KV: the youngest sequence gives its blocks back and is prefilled again later.
    Reclaim reclaim;
    const runtime::TimePoint reclaim_deadline = now() + options_.step_deadline;
    Result<Reclaimed> reclaimed = co_await wire_->scheduler.ask(std::move(reclaim), reclaim_deadline);
    if (!reclaimed || reclaimed->sequences == 0) {
      load_error_ = loaded->error;
      break;
    }
  }
  loading_ = false;
  settle();
}

runtime::Task<> ModelHost::on(GlobalsReady msg) {
  arrived_globals_ = std::move(msg);
  if (!stepping_) adopt_arrived();
  settle();
  co_return;
}

runtime::Task<> ModelHost::on(LayerReady msg) {
  arrived_.push_back(std::move(msg));
  if (!stepping_) adopt_arrived();
  settle();
  co_return;
}

int ModelHost::resident() const {
  return transformer_->resident_layers();
}

/// Only between steps.
void ModelHost::adopt_arrived() {
  if (arrived_globals_) {
    transformer_->adopt(std::move(arrived_globals_->weights));
    arrived_globals_.reset();
    globals_here_ = true;
  }
  while (!arrived_.empty()) {
    LayerReady ready = std::move(arrived_.front());
    arrived_.pop_front();
    if (ready.layer != resident()) continue;  // a range that was dropped meanwhile
    const auto index = static_cast<std::size_t>(ready.layer);
    layer_load_ms_[index] = ms_of(ready.took);
    layer_bytes_[index] = ready.bytes;
    spdlog::debug("host model={} layer={} load_ms={:.2f}", options_.model_name, ready.layer + 1,
                  layer_load_ms_[index]);
    transformer_->adopt(ready.layer, std::move(ready.weights));
  }
}

/// The end of a load, once its last layer is adopted; or of one that failed.
void ModelHost::settle() {
  if (loading_ || stopping_ || broken_) return;
  if (load_error_) {
    const Error error = *load_error_;
    load_error_.reset();
    load_failed(error);
    return;
  }
  if (!globals_here_ || resident() < wanted_)
    return;  // the last ones are in our mailbox, or wait for the step
  const bool changed = !ready_ || depth_ != wanted_;
  const int before = ready_ ? depth_ : 0;
  depth_ = wanted_;
  ready_ = true;
  const runtime::Duration took = now() - load_started_;
  for (DepthWaiter& waiter : waiters_) waiter.reply.send(Depth{resident()});
  waiters_.clear();
  if (!changed) return;
  spdlog::info("host model={} depth={} was={} resident=1-{} load_ms={:.1f}", options_.model_name, depth_,
               before, resident(), ms_of(took));
  tell_depth();
  DepthSettled settled{depth_, took, false};
  (void)wire_->profiler.tell(settled);
  tell_router();
}

void ModelHost::load_failed(const Error& error) {
  spdlog::warn("host model={} depth={} wanted={} load failed: {}", options_.model_name, depth_, wanted_,
               error.message);
  const Error answer = fail(error.code, fmt::format("loading layers to {}: {}", wanted_, error.message));
  for (DepthWaiter& waiter : waiters_) waiter.reply.fail(answer);
  waiters_.clear();
  if (!ready_) {
    broken_ = answer;
    DepthChanged changed{depth_, 0, broken_};
    (void)wire_->scheduler.tell_urgent(changed);
    tell_router();
    return;
  }
  wanted_ = depth_;
  drop_unused();
  DepthSettled settled{depth_, {}, true};
  (void)wire_->profiler.tell(settled);
}

void ModelHost::tell_depth() {
  DepthChanged changed{depth_, globals_here_ ? resident() : 0, std::nullopt};
  (void)wire_->scheduler.tell_urgent(changed);
}

void ModelHost::tell_router() {
  HostState state{options_.model_name, depth_, resident(), ready_, broken_};
  (void)wire_->router.tell_urgent(std::move(state));
}

/// Layers that no sequence uses and nobody wants go back to the arena. Between steps only.
void ModelHost::drop_unused() {
  if (stepping_ || loading_ || !ready_ || !arrived_.empty()) return;
  const int keep = std::max({depth_, wanted_, in_use_});
  if (promised_ <= keep || promised_ != resident()) return;
  spdlog::info("host model={} layers {}-{} freed", options_.model_name, keep + 1, resident());
  transformer_->drop_layers(keep);
  promised_ = resident();
  tell_depth();
}

runtime::Task<> ModelHost::on(LayersInUse msg) {
  in_use_ = msg.layers_in_use;
  drop_unused();
  co_return;
}

runtime::Task<> ModelHost::on(RunStep msg) {
  in_use_ = msg.layers_in_use;
  if (broken_) {
    StepReport report;
    report.status = *broken_;
    (void)co_await wire_->scheduler.send(std::move(report));
    co_return;
  }
  stepping_ = true;
  scope().spawn(run_step(std::move(msg)));
}

runtime::Task<> ModelHost::run_step(RunStep msg) {
  StepReport report;
  const runtime::TimePoint start = now();
  Result<gpu::Event> event = transformer_->start(msg.plan);
  if (!event) {
    report.status = event.error();
  } else {
    report.status = co_await event->completed(executor(), start + options_.step_deadline);
  }
  const runtime::TimePoint end = now();
  report.took = end - start;
  ++steps_;
  if (options_.tracer != nullptr) {
    options_.tracer->complete("step", trace_track_, start, end,
                              fmt::format("\"rows\":{},\"outputs\":{},\"layers\":{}", msg.plan.rows.size(),
                                          msg.plan.outputs.size(), msg.layers_in_use),
                              "step");
  }
  if (report.status) {
    const auto results = transformer_->results();
    report.results.assign(results.begin(), results.end());
  } else {
    spdlog::error("host model={} step={} failed: {}", options_.model_name, steps_,
                  report.status.error().message);
    if (report.status.error().code == Errc::deadline_exceeded) {
      // The device may still write to the step's memory: this model does not run again.
      broken_ = fail(Errc::device_fault, fmt::format("a step did not end within {} ms; restart the server",
                                                     options_.step_deadline.count()));
      report.status = *broken_;
      report.device_lost = true;
      tell_router();
    }
  }
  stepping_ = false;
  if (!report.device_lost) {
    adopt_arrived();
    settle();
    drop_unused();
  }
  (void)co_await wire_->scheduler.send(std::move(report));  // fails only when the Scheduler has stopped
}

runtime::Task<> ModelHost::on(GetModelStats msg) {
  if (!wire_) {
    msg.reply.fail(fail(Errc::busy, "the model is being set up: retry"));
    co_return;
  }
  scope().spawn(answer_stats(std::move(msg)));  // it asks others; the mailbox stays responsive
  co_return;
}

runtime::Task<> ModelHost::answer_stats(GetModelStats msg) {
  const runtime::TimePoint deadline = now() + std::chrono::seconds(5);
  GetSchedulerStats ask_scheduler;
  Result<SchedulerStats> scheduled = co_await wire_->scheduler.ask(std::move(ask_scheduler), deadline);
  GetProfilerStats ask_profiler;
  Result<ProfilerStats> profiled = co_await wire_->profiler.ask(std::move(ask_profiler), deadline);
  ModelStats stats;
  stats.name = options_.model_name;
  stats.layers = options_.file->config().layers;
  stats.depth = depth_;
  stats.resident = globals_here_ ? resident() : 0;
  stats.layer_load_ms = layer_load_ms_;
  stats.synthetic = options_.file->synthetic().has_value();
  stats.weight_bytes = transformer_->weight_bytes();
  if (broken_) stats.error = broken_->message;
  if (scheduled) {
    stats.running = scheduled->running;
    stats.waiting = scheduled->waiting;
    stats.steps = scheduled->steps;
    stats.prompt_tokens = scheduled->prompt_tokens;
    stats.completion_tokens = scheduled->completion_tokens;
    stats.preemptions = scheduled->preemptions;
    stats.blocks_used = scheduled->blocks_used;
    stats.blocks_total = scheduled->blocks_total;
    const std::size_t block_bytes = transformer_->kv_cache()->block_bytes();
    stats.kv_bytes_used = static_cast<std::size_t>(stats.blocks_used) * block_bytes;
    stats.kv_bytes_total = static_cast<std::size_t>(stats.blocks_total) * block_bytes;
  }
  if (profiled) {
    stats.exit_histogram = profiled->exit_histogram;
    stats.breach_rate = profiled->breach_rate;
  }
  msg.reply.send(std::move(stats));
}

runtime::Task<> ModelHost::on_stop() {
  stopping_ = true;
  load_cancel_.cancel();
  for (DepthWaiter& waiter : waiters_) waiter.reply.fail(fail(Errc::draining, "the server is stopping"));
  waiters_.clear();
  co_await scope().join();  // a step that runs reads our sequences' blocks and writes them
}

}  // namespace helios::actors
