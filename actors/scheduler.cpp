#include "actors/scheduler.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include "actors/metric_bounds.hpp"

#include <algorithm>

namespace helios::actors {

namespace {

/// A chunk that never fits the stretch still gets one row every so many steps: slow is better than never.
constexpr int kStarvedStepsMax = 8;

double seconds_of(runtime::Duration d) {
  return std::chrono::duration<double>(d).count();
}

}  // namespace

struct Scheduler::Request {
  RequestId id = 0;
  std::uint64_t order = 0;  // age; survives preemption
  model::Sampling sampling;
  std::vector<std::int32_t> tokens;  // prompt, then every sampled id
  int prompt_tokens = 0;
  int depth = 0;   // layers its rows run now
  int target = 0;  // > depth while it catches up
  bool follows = false;
  std::optional<float> min_confidence;
  model::KvCache::Sequence sequence;
  int position = 0;   // rows computed: tokens[0, position) have KV at layers [0, depth)
  int caught_up = 0;  // tokens[0, caught_up) have KV at layers [depth, target)
  bool in_step = false;
  std::optional<EndOfText> ended;

  int generated() const { return static_cast<int>(tokens.size()) - prompt_tokens; }
  int pending() const { return static_cast<int>(tokens.size()) - position; }
  bool decoding() const { return generated() > 0 && pending() == 1; }
};

struct Scheduler::InFlight {
  Request* request = nullptr;
  policy::StepShare share;
  int output = -1;
};

struct Scheduler::Meters {
  runtime::Gauge& running;
  runtime::Gauge& waiting;
  runtime::Gauge& kv_usage;
  runtime::Counter& prompt_tokens;
  runtime::Counter& generation_tokens;
  runtime::Counter& steps;
  runtime::Counter& preemptions;
  runtime::Counter& catch_up_rows;
  runtime::Counter& overruns;
  runtime::Histogram& step_seconds;
};

Scheduler::Scheduler(SchedulerOptions options, std::shared_ptr<model::KvCache> cache)
    : options_(std::move(options)), cache_(std::move(cache)), step_work_(options_.file->config().layers) {
  if (runtime::Registry* m = options_.metrics) {
    const runtime::Labels labels{{"model_name", options_.model_name}};
    meters_ = std::make_unique<Meters>(
        Meters{m->gauge("helios_num_requests_running", labels, "Sequences that prefill or decode"),
               m->gauge("helios_num_requests_waiting", labels, "Accepted requests that wait for room"),
               m->gauge("helios_kv_cache_usage_perc", labels, "Share of KV blocks in use, 0..1"),
               m->counter("helios_prompt_tokens_total", labels, "Prompt tokens prefilled, each once"),
               m->counter("helios_generation_tokens_total", labels, "Tokens sampled"),
               m->counter("helios_steps_total", labels, "Steps run"),
               m->counter("helios_preemptions_total", labels,
                          "Sequences that gave their blocks back and were prefilled again"),
               m->counter("helios_catch_up_rows_total", labels,
                          "Rows whose deeper layers were filled from stored residual rows"),
               m->counter("helios_step_overruns_total", labels,
                          "Steps with decode rows that took longer than the stretch bound"),
               m->histogram("helios_step_seconds", seconds_bounds(), labels, "Time of one step")});
  }
}

Scheduler::~Scheduler() = default;

runtime::Task<> Scheduler::on(WireScheduler msg) {
  wire_ = std::move(msg);
  WireText text = wire_->for_text;
  (void)co_await wire_->text.send(std::move(text));  // fails only when the text stage has stopped
}

runtime::Task<> Scheduler::on(Enqueue msg) {
  Admit& admit = msg.admit;
  if (broken_) {
    admit.reply.fail(*broken_);
    co_return;
  }
  auto request = std::make_unique<Request>();
  request->id = admit.id;
  request->order = next_order_++;
  request->sampling = std::move(admit.sampling);
  request->tokens = std::move(admit.prompt);
  request->prompt_tokens = static_cast<int>(request->tokens.size());
  request->tokens.reserve(request->tokens.size() + static_cast<std::size_t>(request->sampling.max_tokens));
  request->depth = msg.depth;
  request->follows = msg.follows;
  request->min_confidence = admit.min_confidence;

  OpenText open{admit.id,       std::move(admit.stream), request->sampling, request->prompt_tokens,
                admit.received, std::move(admit.label)};
  Result<void> opened = co_await wire_->text.send(std::move(open));
  if (!opened) {
    admit.reply.fail(opened.error());
    co_return;
  }
  admit.reply.send(Admitted{msg.depth});
  waiting_.push_back(std::move(request));
  co_await pump();
}

runtime::Task<> Scheduler::on(Cancel msg) {
  request_end(msg.id, FinishReason::cancelled);
  co_await pump();
}

runtime::Task<> Scheduler::on(StopText msg) {
  request_end(msg.id, FinishReason::stop);
  co_await pump();
}

runtime::Task<> Scheduler::on(DepthChanged msg) {
  depth_ = msg.depth;
  resident_ = msg.resident;
  if (msg.error) {
    broken_ = msg.error;
    for (auto& request : waiting_) end(*request, FinishReason::error, broken_);
    for (auto& request : running_) end(*request, FinishReason::error, broken_);
  }
  co_await pump();
}

runtime::Task<> Scheduler::on(Reclaim msg) {
  reclaims_.push_back(std::move(msg.reply));
  co_await pump();
}

runtime::Task<> Scheduler::on(GetSchedulerStats msg) {
  SchedulerStats stats = stats_;
  stats.running = static_cast<int>(running_.size());
  stats.waiting = static_cast<int>(waiting_.size());
  stats.blocks_total = cache_->blocks_total();
  stats.blocks_used = cache_->blocks_used();
  msg.reply.send(stats);
  co_return;
}

runtime::Task<> Scheduler::on_stop() {
  // ModelHost stopped before (reverse order of start) and waited for its step, so the blocks may go.
  stopped_ = true;
  waiting_.clear();
  running_.clear();
  reclaims_.clear();
  co_return;
}

runtime::Task<> Scheduler::on(StepReport msg) {
  credit_ = true;
  take_results(msg);
  co_await pump();
}

void Scheduler::end(Request& request, FinishReason reason, std::optional<Error> error) {
  if (request.ended) return;
  request.ended = EndOfText{request.id, reason, std::move(error)};
}

void Scheduler::request_end(RequestId id, FinishReason reason) {
  const auto is_it = [id](const std::unique_ptr<Request>& request) { return request->id == id; };
  if (auto it = std::find_if(running_.begin(), running_.end(), is_it); it != running_.end()) {
    end(**it, reason);
  } else if (auto queued = std::find_if(waiting_.begin(), waiting_.end(), is_it); queued != waiting_.end()) {
    end(**queued, reason);
  }
}

/// Frees what ended and is in no step. Sequences in a running step wait for its report.
void Scheduler::sweep_ended() {
  auto sweep = [this](auto& requests) {
    for (auto it = requests.begin(); it != requests.end();) {
      Request& request = **it;
      if (!request.ended || request.in_step) {
        ++it;
        continue;
      }
      EndOfText ended = std::move(*request.ended);
      it = requests.erase(it);  // the sequence gives its blocks back here
      text_.ends.push_back(std::move(ended));
    }
  };
  sweep(running_);
  sweep(waiting_);
}

void Scheduler::preempt(Request& request) {
  cache_->release(request.sequence);
  request.position = 0;
  request.caught_up = 0;
  if (request.target > request.depth)
    request.depth = request.target;  // it is prefilled again from ids: at any depth
  request.target = 0;
  ++stats_.preemptions;
  if (meters_) meters_->preemptions.add(1);
  const auto it = std::find_if(running_.begin(), running_.end(),
                               [&](const std::unique_ptr<Request>& r) { return r.get() == &request; });
  std::unique_ptr<Request> owned = std::move(*it);
  running_.erase(it);
  // Waiting is ordered by age, so a preempted request goes before everything that came after it.
  const auto place = std::find_if(waiting_.begin(), waiting_.end(),
                                  [&](const std::unique_ptr<Request>& r) { return r->order > owned->order; });
  waiting_.insert(place, std::move(owned));
}

/// The youngest running sequence, `keep` and older ones excepted.
bool Scheduler::preempt_youngest(const Request* keep) {
  Request* youngest = nullptr;
  for (const auto& request : running_) {
    if (request->ended || request.get() == keep) continue;
    if (youngest == nullptr || request->order > youngest->order) youngest = request.get();
  }
  if (youngest == nullptr || (keep != nullptr && youngest->order < keep->order)) return false;
  preempt(*youngest);
  return true;
}

void Scheduler::admit_waiting() {
  while (!waiting_.empty() && std::cmp_less(running_.size(), options_.max_running)) {
    Request& request = *waiting_.front();
    if (request.follows && request.depth < depth_ && depth_ <= resident_) request.depth = depth_;
    if (request.follows && request.depth > depth_) request.depth = depth_;
    if (request.depth > resident_) return;  // its layers are on their way
    const int positions = static_cast<int>(request.tokens.size()) + 1;
    const Result<void> reserved = cache_->reserve(request.sequence, positions, {0, request.depth});
    if (!reserved) {
      if (running_.empty() && reserved.error().code != Errc::out_of_memory) {
        end(request, FinishReason::error, reserved.error());
      } else if (running_.empty() && !cache_->could_ever_fit(positions, request.depth)) {
        end(request, FinishReason::error,
            fail(Errc::out_of_memory,
                 fmt::format("{} tokens at depth {} do not fit the memory that the loaded layers leave",
                             positions, request.depth)));
      }
      sweep_ended();
      return;
    }
    running_.push_back(std::move(waiting_.front()));
    waiting_.pop_front();
    std::sort(running_.begin(), running_.end(),
              [](const auto& a, const auto& b) { return a->order < b->order; });
  }
}

/// Prefill again from ids at `depth`: exact, since KV depends on ids alone, but all at once.
void Scheduler::restart(Request& request, int depth) {
  cache_->release(request.sequence);
  request.depth = depth;
  request.target = 0;
  request.position = 0;
  request.caught_up = 0;
}

/// Sequences that follow the model start to catch up once the deeper layers are here. One target at a time.
void Scheduler::follow_depth() {
  for (auto& request : running_) {
    if (!request->follows || request->target > request->depth || request->depth >= depth_ ||
        depth_ > resident_)
      continue;
    if (!options_.keep_rows && request->position > 0) {
      restart(*request, depth_);
      continue;
    }
    const int positions = static_cast<int>(request->tokens.size()) + 1;
    const Result<void> reserved = cache_->reserve(request->sequence, positions, {request->depth, depth_});
    if (!reserved && reserved.error().code == Errc::unsupported) {  // rows of its depth are not all there
      restart(*request, depth_);
      continue;
    }
    if (!reserved) continue;  // no room: it stays where it is and tries again at the next step
    request->target = depth_;
    request->caught_up = 0;
  }
}

/// Room for every row that the next step could write. The youngest sequences give way to older ones.
bool Scheduler::reserve_rows() {
  bool preempted = false;
  for (std::size_t i = 0; i < running_.size();) {
    Request& request = *running_[i];
    const int positions = static_cast<int>(request.tokens.size());
    const int layers = std::max(request.depth, request.target);
    if (cache_->reserve(request.sequence, positions, {0, layers})) {
      ++i;
      continue;
    }
    preempted = true;
    if (request.target > request.depth) {
      // Deepening is a wish, going on is a promise: give the deeper blocks back first.
      cache_->release_layers(request.sequence, {request.depth, request.target});
      request.target = 0;
      request.caught_up = 0;
      continue;
    }
    if (preempt_youngest(&request)) continue;  // only younger ones leave, so index i still names this request
    preempt(request);                          // it is the youngest itself: it waits for room
  }
  return preempted;
}

runtime::Task<> Scheduler::pump() {
  if (!wire_ || stopped_) co_return;
  if (!credit_) co_return;
  sweep_ended();
  while (!reclaims_.empty()) {
    runtime::Reply<Reclaimed> reply = std::move(reclaims_.front());
    reclaims_.pop_front();
    reply.send(Reclaimed{preempt_youngest(nullptr) ? 1 : 0});
  }
  if (!broken_) {
    follow_depth();
    const bool preempted = reserve_rows();
    if (!preempted) admit_waiting();
    if (preempted && running_.empty()) admit_waiting();
    follow_depth();
  }
  sweep_ended();
  if (meters_) {
    meters_->running.set(static_cast<double>(running_.size()));
    meters_->waiting.set(static_cast<double>(waiting_.size()));
    const auto total = static_cast<double>(cache_->blocks_total());
    meters_->kv_usage.set(total > 0 ? static_cast<double>(cache_->blocks_used()) / total : 0.0);
  }

  if (!running_.empty() && !broken_) {
    std::vector<policy::StepCandidate> candidates;
    candidates.reserve(running_.size());
    for (const auto& request : running_) {
      candidates.push_back({.depth = request->depth,
                            .target = request->target,
                            .caught_up = request->caught_up,
                            .position = request->position,
                            .pending = request->pending(),
                            .decoding = request->decoding()});
    }
    const policy::StepLimits limits{.layers = options_.file->config().layers,
                                    .rows_max = options_.rows_max,
                                    .stretch_max = options_.stretch_max,
                                    .force_chunk = starved_steps_ >= kStarvedStepsMax};
    const policy::ComposedStep step = policy::compose_step(candidates, limits, time_model_);
    starved_steps_ = step.starved ? starved_steps_ + 1 : 0;
    RunStep run = build_plan(step);
    if (!run.plan.rows.empty()) {
      step_work_ = step.work;
      step_bound_seconds_ = time_model_.trained() ? options_.stretch_max * step.decode_seconds : 0;
      credit_ = false;
      reported_in_use_ = run.layers_in_use;
      Result<void> sent = co_await wire_->host.send(std::move(run));
      if (!sent) {
        StepReport report;
        report.status = sent.error();
        credit_ = true;
        take_results(report);
        sweep_ended();
      }
    }
  }
  if (credit_ && reported_in_use_ != layers_in_use()) {
    reported_in_use_ = layers_in_use();
    LayersInUse in_use{reported_in_use_};
    (void)wire_->host.tell(in_use);  // a hint: a host that is gone frees everything anyway
  }
  co_await flush_text();
}

int Scheduler::layers_in_use() const {
  int layers = 0;
  for (const auto& request : running_) layers = std::max({layers, request->depth, request->target});
  for (const auto& request : waiting_) {
    if (!request->follows) layers = std::max(layers, request->depth);
  }
  return layers;
}

RunStep Scheduler::build_plan(const policy::ComposedStep& step) {
  RunStep run;
  run.layers_in_use = layers_in_use();
  in_flight_.clear();
  std::vector<model::StepRow>& rows = run.plan.rows;
  for (std::size_t i = 0; i < running_.size(); ++i) {
    Request& request = *running_[i];
    const policy::StepShare& share = step.shares[i];
    if (share.catch_up + share.rows == 0 && !share.deepen) continue;
    in_flight_.push_back({&request, share, -1});
    request.in_step = true;
    for (int k = 0; k < share.catch_up; ++k) {
      const int position = request.caught_up + k;
      rows.push_back({.sequence = &request.sequence,
                      .position = position,
                      .token = request.tokens[static_cast<std::size_t>(position)],
                      .first_layer = static_cast<std::int16_t>(request.depth),
                      .last_layer = static_cast<std::int16_t>(request.target),
                      .output = -1});
    }
  }
  // Rows that start at layer 0: deepest first, so that the active rows of every layer are one run; among
  // equals decode rows before prefill, which changes nothing but makes traces readable.
  std::vector<InFlight*> order;
  order.reserve(in_flight_.size());
  for (InFlight& entry : in_flight_) {
    if (entry.share.rows > 0) order.push_back(&entry);
  }
  auto depth_of = [](const InFlight& e) { return e.share.deepen ? e.request->target : e.request->depth; };
  std::sort(order.begin(), order.end(), [&](const InFlight* a, const InFlight* b) {
    const int da = depth_of(*a), db = depth_of(*b);
    if (da != db) return da > db;
    const bool decode_a = a->request->decoding(), decode_b = b->request->decoding();
    return decode_a != decode_b ? decode_a : a->request->order < b->request->order;
  });
  for (InFlight* entry : order) {
    Request& request = *entry->request;
    const int depth = depth_of(*entry);
    const bool yields = entry->share.rows == request.pending();
    for (int k = 0; k < entry->share.rows; ++k) {
      const int position = request.position + k;
      const bool last = yields && k + 1 == entry->share.rows;
      std::int16_t output = -1;
      if (last) {
        output = static_cast<std::int16_t>(run.plan.outputs.size());
        entry->output = output;
        run.plan.outputs.push_back({.depth = depth,
                                    .sampling = &request.sampling,
                                    .counter = static_cast<std::uint64_t>(request.generated()),
                                    .want_logits = false});
      }
      rows.push_back({.sequence = &request.sequence,
                      .position = position,
                      .token = request.tokens[static_cast<std::size_t>(position)],
                      .first_layer = 0,
                      .last_layer = static_cast<std::int16_t>(depth),
                      .output = output});
    }
  }
  return run;
}

void Scheduler::take_results(StepReport& report) {
  if (report.status) {
    time_model_.observe(step_work_, std::max(seconds_of(report.took), 1e-9));
    ++stats_.steps;
    if (meters_) {
      meters_->steps.add(1);
      meters_->step_seconds.observe(seconds_of(report.took));
      if (step_bound_seconds_ > 0 && seconds_of(report.took) > step_bound_seconds_) meters_->overruns.add(1);
    }
  }
  StepSummary summary;
  summary.took = report.took;
  const int layers = options_.file->config().layers;
  for (InFlight& entry : in_flight_) {
    Request& request = *entry.request;
    request.in_step = false;
    if (!report.status) {
      end(request, FinishReason::error, report.status.error());
      continue;
    }
    request.caught_up += entry.share.catch_up;
    if (meters_ && entry.share.catch_up > 0)
      meters_->catch_up_rows.add(static_cast<std::uint64_t>(entry.share.catch_up));
    if (entry.share.deepen) {
      request.depth = request.target;
      request.target = 0;
      request.caught_up = 0;
    }
    const int prefilled = std::clamp(request.prompt_tokens - request.position, 0, entry.share.rows);
    if (request.generated() == 0 && prefilled > 0) {
      stats_.prompt_tokens += static_cast<std::uint64_t>(prefilled);
      if (meters_) meters_->prompt_tokens.add(static_cast<std::uint64_t>(prefilled));
    }
    request.position += entry.share.rows;
    if (entry.output < 0 || request.ended) continue;  // a cancelled request's last token is not counted

    const model::StepResult& result = report.results[static_cast<std::size_t>(entry.output)];
    if (result.nan) {
      end(request, FinishReason::error,
          fail(Errc::device_fault,
               fmt::format("the logits of token {} are not numbers", request.generated())));
      continue;
    }
    const float threshold = request.min_confidence.value_or(
        options_.file->threshold(request.depth).value_or(options_.confidence_threshold));
    const bool breach = request.depth < layers && result.confidence < threshold;
    SampledToken token;
    token.id = request.id;
    token.info = {.token = result.token, .logprob = result.logprob, .depth = request.depth, .top = {}};
    for (const auto& top : result.top_logprobs) token.info.top.push_back({top.token, top.logprob});
    const auto& stops = request.sampling.stop_ids;
    token.stop_token = std::find(stops.begin(), stops.end(), result.token) != stops.end() ||
                       (!request.sampling.ignore_eos && options_.file->tokenizer().is_end(result.token));
    token.breach = breach;
    text_.tokens.push_back(token);
    summary.tokens.push_back(
        {.depth = request.depth, .counts = request.follows && request.depth < layers, .breach = breach});
    request.tokens.push_back(result.token);
    ++stats_.completion_tokens;
    if (meters_) meters_->generation_tokens.add(1);
    if (token.stop_token) {
      end(request, FinishReason::stop);
    } else if (request.generated() >= request.sampling.max_tokens) {
      end(request, FinishReason::length);
    }
  }
  in_flight_.clear();
  if (report.device_lost) {
    broken_ = report.status.error();
    for (auto& request : running_) {
      end(*request, FinishReason::error, broken_);
      text_.ends.push_back(*request->ended);
    }
    // The device may still write to these blocks.
    std::move(running_.begin(), running_.end(), std::back_inserter(graveyard_));
    running_.clear();
    for (auto& request : waiting_) end(*request, FinishReason::error, broken_);
  }
  for (const auto& request : running_) summary.running += request->decoding() && !request->ended ? 1 : 0;
  if (!summary.tokens.empty()) (void)wire_->profiler.tell(std::move(summary));  // a lost sample is no harm
}

runtime::Task<> Scheduler::flush_text() {
  if (text_.tokens.empty() && text_.ends.empty()) co_return;
  StepText text = std::move(text_);
  text_ = StepText{};
  text.at = now();
  (void)co_await wire_->text.send(
      std::move(text));  // fails only when the text stage has stopped, which ends all streams
}

}  // namespace helios::actors
