#include "actors/router.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>

#include "actors/policy/depth_choice.hpp"
#include "gpu/device.hpp"
#include "runtime/sleep.hpp"

namespace helios::actors {

namespace {

constexpr std::size_t kReadyWaitersMax = 64;
constexpr runtime::Duration kDrainPoll = std::chrono::milliseconds(20);
constexpr runtime::Duration kCancelGrace =
    std::chrono::seconds(30);  // for cancelled requests to leave their step

}  // namespace

struct Router::Meters {
  runtime::Gauge& live;
  runtime::Gauge& live_prompt_tokens;
  runtime::Counter& accepted;
  runtime::Counter& refused;
  runtime::Histogram& prompt_tokens;
};

Router::Router(RouterOptions options) : options_(std::move(options)), started_(now()) {
  for (const Route& route : options_.routes)
    states_.push_back({route.name, route.first_depth, 0, false, std::nullopt});
  if (runtime::Registry* m = options_.metrics) {
    meters_ = std::make_unique<Meters>(
        Meters{m->gauge("helios_live_requests", {}, "Requests accepted and not ended"),
               m->gauge("helios_live_prompt_tokens", {}, "Their prompt tokens"),
               m->counter("helios_requests_accepted_total", {}, "Requests accepted"),
               m->counter("helios_requests_refused_total", {}, "Requests refused with an error"),
               m->histogram("helios_request_prompt_tokens", runtime::exponential_bounds(1, 2, 17), {},
                            "Prompt tokens of accepted requests")});
  }
}

Router::~Router() = default;

Result<std::size_t> Router::route_of(const std::string& model) const {
  if (model.empty() || model == "default") return std::size_t{0};
  for (std::size_t i = 0; i < options_.routes.size(); ++i) {
    if (options_.routes[i].name == model) return i;
  }
  std::string names;
  for (const Route& route : options_.routes) names += (names.empty() ? "" : ", ") + route.name;
  return fail(Errc::no_model, fmt::format("no model '{}'; there is: {}", model.substr(0, 128), names));
}

policy::Load Router::load() const {
  return {static_cast<int>(live_.size()), live_prompt_tokens_};
}

runtime::Task<> Router::on(Submit msg) {
  const runtime::TimePoint received = now();
  auto refuse = [&](Error error) {
    if (meters_) meters_->refused.add(1);
    msg.reply.fail(std::move(error));
  };
  if (draining_) {
    refuse(fail(Errc::draining, "the server is shutting down"));
    co_return;
  }
  if (!msg.stream) {
    refuse(fail(Errc::bad_request, "a request needs a stream for its answer"));
    co_return;
  }
  const Result<std::size_t> route = route_of(msg.request.model);
  if (!route) {
    refuse(route.error());
    co_return;
  }
  if (states_[*route].error) {
    refuse(*states_[*route].error);
    co_return;
  }
  if (const auto known = policy::parse_policy(msg.request.policy, policy::Policy::full); !known) {
    refuse(known.error());
    co_return;
  }
  const int layers = options_.routes[*route].file->config().layers;
  if (msg.request.exit_layer && (*msg.request.exit_layer < 1 || *msg.request.exit_layer > layers)) {
    refuse(fail(Errc::bad_request,
                fmt::format("exit_layer {} is outside 1..{}", *msg.request.exit_layer, layers)));
    co_return;
  }
  if (const Result<void> valid = policy::check_request(options_.bounds, load(), msg.request); !valid) {
    refuse(valid.error());
    co_return;
  }
  const RequestId id = next_id_++;
  live_.emplace(id, Live{*route, 0, false});
  if (meters_) meters_->live.set(static_cast<double>(live_.size()));
  scope().spawn(admit(std::move(msg), id, *route, received));
}

/// Everything after the first checks: others work on it while Router serves on.
runtime::Task<> Router::admit(Submit msg, RequestId id, std::size_t route_index,
                              runtime::TimePoint received) {
  const Route& route = options_.routes[route_index];
  auto refuse = [&](Error error) {
    if (meters_) meters_->refused.add(1);
    forget(id);
    msg.reply.fail(std::move(error));
  };
  PreparePrompt prepare;
  prepare.file = route.file;
  prepare.prompt = std::move(msg.request.prompt);
  prepare.raw = msg.request.raw;
  Result<PreparedPrompt> prepared =
      co_await options_.worker.ask(std::move(prepare), received + options_.ask_deadline);
  if (!prepared) {
    refuse(prepared.error());
    co_return;
  }
  const auto prompt_tokens = static_cast<std::int64_t>(prepared->ids.size());
  const int depth = msg.request.exit_layer.value_or(states_[route_index].depth);
  const Result<void> fits = policy::check_tokens(
      options_.bounds, load(), prompt_tokens, msg.request.sampling.max_tokens, route.file->config().context,
      route.cache->could_ever_fit(prompt_tokens + msg.request.sampling.max_tokens, depth));
  if (!fits) {
    refuse(fits.error());
    co_return;
  }
  if (draining_) {
    refuse(fail(Errc::draining, "the server is shutting down"));
    co_return;
  }
  if (msg.stream->abandoned()) {  // the reader left while its prompt was tokenized: nothing to run
    refuse(fail(Errc::cancelled, "the reader went away"));
    co_return;
  }
  live_[id].prompt_tokens = prompt_tokens;
  live_prompt_tokens_ += prompt_tokens;
  if (meters_) meters_->live_prompt_tokens.set(static_cast<double>(live_prompt_tokens_));

  std::vector<std::int32_t> prompt_ids;
  if (msg.request.return_prompt_ids) prompt_ids = prepared->ids;
  Admit admit;
  admit.id = id;
  admit.prompt = std::move(prepared->ids);
  admit.sampling = std::move(msg.request.sampling);
  admit.exit_layer = msg.request.exit_layer;
  admit.policy = msg.request.policy.empty() ? route.policy : msg.request.policy;
  admit.policy_named = !msg.request.policy.empty() || !msg.request.model.empty();
  admit.min_confidence = msg.request.min_confidence;
  admit.label = std::move(msg.request.label);
  admit.stream = msg.stream;
  admit.received = received;
  Result<Admitted> admitted = co_await route.host.ask(std::move(admit), runtime::kNever);
  if (!admitted) {
    refuse(admitted.error());
    co_return;
  }
  if (meters_) {
    meters_->accepted.add(1);
    meters_->prompt_tokens.observe(static_cast<double>(prompt_tokens));
  }
  if (!msg.reply.send(Accepted{id, static_cast<int>(prompt_tokens), std::move(prompt_ids)})) {
    // Whoever asked has given up: nobody would read the answer or cancel it.
    const auto it = live_.find(id);
    if (it == live_.end()) co_return;  // it has ended already
    it->second.cancelled = true;
    Cancel cancel{id};
    (void)route.host.tell_urgent(cancel);
  }
}

runtime::Task<> Router::on(Cancel msg) {
  const auto it = live_.find(msg.id);
  if (it == live_.end() || it->second.cancelled) co_return;  // unknown, ended, or cancelled before
  it->second.cancelled = true;
  (void)options_.routes[it->second.route].host.tell_urgent(msg);
}

runtime::Task<> Router::on(RequestDone msg) {
  if (draining_) {
    const auto it = live_.find(msg.id);
    if (it != live_.end()) ++(it->second.cancelled ? drained_cancelled_ : drained_finished_);
  }
  forget(msg.id);
  co_return;
}

void Router::forget(RequestId id) {
  const auto it = live_.find(id);
  if (it == live_.end()) return;
  live_prompt_tokens_ -= it->second.prompt_tokens;
  live_.erase(it);
  if (meters_) {
    meters_->live.set(static_cast<double>(live_.size()));
    meters_->live_prompt_tokens.set(static_cast<double>(live_prompt_tokens_));
  }
}

runtime::Task<> Router::on(SetDepth msg) {
  if (draining_) {
    msg.reply.fail(fail(Errc::draining, "the server is shutting down"));
    co_return;
  }
  const Result<std::size_t> route = route_of(msg.model);
  if (!route) {
    msg.reply.fail(route.error());
    co_return;
  }
  // The host answers the session's reply itself; a full host drops it, which answers too.
  (void)options_.routes[*route].host.tell(std::move(msg));
}

runtime::Task<> Router::on(HostState msg) {
  for (HostState& state : states_) {
    if (state.model == msg.model) state = msg;
  }
  answer_ready();
  co_return;
}

runtime::Task<> Router::on(WaitReady msg) {
  if (ready_waiters_.size() >= kReadyWaitersMax) {
    msg.reply.fail(fail(Errc::busy, "too many wait for the server to be ready"));
    co_return;
  }
  ready_waiters_.push_back(std::move(msg.reply));
  answer_ready();
}

void Router::answer_ready() {
  Ready ready;
  for (const HostState& state : states_) {
    if (state.error) {
      for (auto& reply : ready_waiters_) reply.fail(*state.error);
      ready_waiters_.clear();
      return;
    }
    if (!state.ready) return;
    ready.models.push_back(state.model);
  }
  for (auto& reply : ready_waiters_) reply.send(ready);
  ready_waiters_.clear();
}

runtime::Task<> Router::on(GetStats msg) {
  scope().spawn(answer_stats(std::move(msg)));
  co_return;
}

runtime::Task<> Router::answer_stats(GetStats msg) {
  Stats stats;
  for (const Route& route : options_.routes) {
    GetModelStats ask;
    Result<ModelStats> model = co_await route.host.ask(std::move(ask), now() + std::chrono::seconds(10));
    if (model) {
      stats.models.push_back(std::move(*model));
    } else {
      ModelStats silent;
      silent.name = route.name;
      silent.error = model.error().message;
      stats.models.push_back(std::move(silent));
    }
  }
  stats.live_requests = static_cast<int>(live_.size());
  stats.live_prompt_tokens = live_prompt_tokens_;
  stats.draining = draining_;
  stats.uptime_s = std::chrono::duration<double>(now() - started_).count();
  if (options_.device != nullptr) {
    stats.device_bytes_total = options_.device->budget().total();
    stats.device_bytes_used = stats.device_bytes_total - options_.device->budget().free();
  }
  msg.reply.send(std::move(stats));
}

runtime::Task<> Router::on(Drain msg) {
  draining_ = true;
  spdlog::info("router draining: {} live requests", live_.size());
  scope().spawn(drain(std::move(msg)));
  co_return;
}

runtime::Task<> Router::drain(Drain msg) {
  const runtime::CancelToken stop = scope().token();
  while (!live_.empty() && now() < msg.deadline) {
    (void)co_await runtime::sleep_until(executor(), std::min(msg.deadline, now() + kDrainPoll), stop);
    if (stop.cancelled()) co_return;  // the reply says dropped
  }
  for (auto& [id, live] : live_) {
    if (live.cancelled) continue;
    live.cancelled = true;
    Cancel cancel{id};
    (void)options_.routes[live.route].host.tell_urgent(cancel);
  }
  const runtime::TimePoint give_up = now() + kCancelGrace;
  while (!live_.empty() && now() < give_up) {
    (void)co_await runtime::sleep_until(executor(), now() + kDrainPoll, stop);
    if (stop.cancelled()) co_return;
  }
  spdlog::info("router drained: {} finished, {} cancelled, {} left", drained_finished_, drained_cancelled_,
               live_.size());
  msg.reply.send(Drained{drained_finished_, drained_cancelled_});
}

runtime::Task<> Router::on_stop() {
  draining_ = true;
  for (auto& reply : ready_waiters_) reply.fail(fail(Errc::draining, "the server is stopping"));
  ready_waiters_.clear();
  co_return;
}

}  // namespace helios::actors
