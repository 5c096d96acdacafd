#include "actors/profiler.hpp"

#include <spdlog/spdlog.h>

#include "actors/policy/depth_choice.hpp"

namespace helios::actors {

struct Profiler::Meters {
  runtime::Gauge& breach_rate;
  runtime::Gauge& exit_layer;
  runtime::Counter& breaches;
  runtime::Counter& decisions;
};

Profiler::Profiler(ProfilerOptions options)
    : options_(std::move(options)), window_(options_.breach_window, options_.breach_max) {
  if (runtime::Registry* m = options_.metrics) {
    const runtime::Labels labels{{"model_name", options_.model_name}};
    meters_ = std::make_unique<Meters>(Meters{
        m->gauge("helios_breach_rate", labels, "Share of tokens below their threshold in the window, 0..1"),
        m->gauge("helios_exit_layer", labels, "Layers that new unpinned tokens run"),
        m->counter("helios_breaches_total", labels, "Tokens below the confidence threshold of their exit"),
        m->counter("helios_deepen_decisions_total", labels, "Times the breach counter led to a load")});
  }
}

Profiler::~Profiler() = default;

runtime::Task<> Profiler::on(WireProfiler msg) {
  wire_ = std::move(msg);
  co_return;
}

runtime::Task<> Profiler::on(StepSummary msg) {
  for (const StepSummary::Token& token : msg.tokens) {
    ++exit_histogram_[token.depth];
    ++tokens_since_;
    // A row that has not moved yet says nothing about the depth that serves now.
    if (!token.counts || token.depth != depth_) continue;
    window_.add(token.breach, msg.running);
    if (token.breach && meters_) meters_->breaches.add(1);
  }
  if (meters_) meters_->breach_rate.set(window_.rate());
  if (!options_.adaptive || deciding_ || !wire_ || !window_.tripped()) co_return;
  const std::optional<int> next = policy::next_exit(depth_, options_.exits, options_.layers);
  if (!next) co_return;
  const runtime::TimePoint at = now();
  if (!policy::may_decide(options_.residency, tokens_since_, at - decided_at_, last_load_time_)) co_return;
  spdlog::info("profiler model={} decision=deepen from={} to={} breach_rate={:.2f} window={} limit={:.2f}",
               options_.model_name, depth_, *next, window_.rate(), window_.window(), options_.breach_max);
  if (meters_) meters_->decisions.add(1);
  window_.reset();
  tokens_since_ = 0;
  decided_at_ = at;
  Deepen deepen{*next};
  deciding_ = static_cast<bool>(wire_->host.tell(deepen));  // a full host: the counter trips again
}

runtime::Task<> Profiler::on(DepthSettled msg) {
  deciding_ = false;
  if (msg.depth != depth_) window_.reset();
  depth_ = msg.depth;
  if (!msg.failed) last_load_time_ = msg.load_time;
  decided_at_ = now();
  if (meters_) meters_->exit_layer.set(depth_);
  co_return;
}

runtime::Task<> Profiler::on(GetProfilerStats msg) {
  msg.reply.send(ProfilerStats{exit_histogram_, window_.rate()});
  co_return;
}

}  // namespace helios::actors
