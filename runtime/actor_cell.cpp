#include "runtime/actor_cell.hpp"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "runtime/one_shot.hpp"
#include "runtime/sleep.hpp"

namespace helios::runtime::detail {

namespace {

thread_local ActorCell* t_under_construction = nullptr;

std::string describe(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const std::exception& e) {
    return e.what();
  } catch (...) {
    return "unknown exception";
  }
}

}  // namespace

struct ActorCell::Meters {
  Counter* messages = nullptr;
  Counter* failures = nullptr;
  Counter* restarts = nullptr;
};

/// The loop waits here for a message, a child's failure or stop.
struct ActorCell::Parked {
  ActorCell& cell;
  bool await_ready() const {
    return cell.stop_.cancelled() || cell.child_failure_ != nullptr || !cell.mailbox_->try_park();
  }
  void await_suspend(std::coroutine_handle<> loop) const { cell.parked_ = loop; }
  void await_resume() const noexcept {}
};

ActorCell::ActorCell(Executor& executor, ActorOptions options, Factory factory, Hooks hooks, Tracer* tracer)
    : options_(std::move(options)),
      factory_(std::move(factory)),
      hooks_(std::move(hooks)),
      tracer_(tracer),
      strand_(executor),
      loop_scope_(strand_) {}

ActorCell::~ActorCell() = default;

std::shared_ptr<ActorCell> ActorCell::create(Executor& executor, ActorOptions options, Factory factory,
                                             Hooks hooks, Registry* metrics, Tracer* tracer) {
  std::shared_ptr<ActorCell> cell(
      new ActorCell(executor, std::move(options), std::move(factory), std::move(hooks), tracer));
  const std::weak_ptr<ActorCell> weak = cell;
  const ActorOptions& o = cell->options_;
  // Jobs hold the cell weakly: a strong hold in the cell's own strand would be a ring when the executor
  // stops.
  cell->mailbox_ = Mailbox::create({o.name, o.mailbox_capacity, o.mailbox_reserved, o.when_full}, [weak] {
    const std::shared_ptr<ActorCell> self = weak.lock();
    if (!self) return;
    self->strand_.post([weak] {
      if (const std::shared_ptr<ActorCell> still = weak.lock()) still->resume_parked();
    });
  });
  if (tracer != nullptr) cell->track_ = tracer->track("actor/" + o.name);
  if (metrics != nullptr) {
    const Labels labels{{"actor", o.name}};
    cell->meters_ = std::make_unique<Meters>();
    cell->meters_->messages = &metrics->counter("helios_actor_messages_total", labels, "Messages handled");
    cell->meters_->failures =
        &metrics->counter("helios_actor_failures_total", labels, "Exceptions at actor edges");
    cell->meters_->restarts =
        &metrics->counter("helios_actor_restarts_total", labels, "Restarts by supervision");
    metrics->gauge_callback(
        "helios_mailbox_depth", labels,
        [mailbox = std::weak_ptr<Mailbox>(cell->mailbox_)] {
          const std::shared_ptr<Mailbox> live = mailbox.lock();
          return live ? static_cast<double>(live->depth()) : 0.0;
        },
        "Messages waiting in the mailbox");
  }
  return cell;
}

ActorCell& ActorCell::under_construction() {
  if (t_under_construction == nullptr) {
    std::fprintf(stderr, "helios: an actor was constructed by other means than ActorSystem::spawn\n");
    std::abort();
  }
  return *t_under_construction;
}

void ActorCell::start() {
  fresh_scope();
  build();
  (void)loop_scope_.spawn(loop());
}

void ActorCell::build() {
  struct Mark {
    ActorCell* previous;
    explicit Mark(ActorCell* cell) : previous(std::exchange(t_under_construction, cell)) {}
    ~Mark() { t_under_construction = previous; }
  };
  const Mark mark(this);
  actor_ = factory_();
}

void ActorCell::fresh_scope() {
  scope_ = std::make_unique<AsyncScope>(strand_);
  scope_->on_exception([this](std::exception_ptr failure) {
    if (!child_failure_) child_failure_ = std::move(failure);
    // Not inline: the child that failed is still running its last lines.
    strand_.post([weak = weak_from_this()] {
      if (const std::shared_ptr<ActorCell> self = weak.lock()) self->resume_parked();
    });
  });
}

void ActorCell::resume_parked() {
  if (const std::coroutine_handle<> loop = std::exchange(parked_, nullptr)) loop.resume();
}

Task<> ActorCell::loop() {
  const std::size_t limit = strand_.turn_limit();
  std::size_t turn = 0;
  for (;;) {
    if (turn >= limit) {
      turn = 0;
      co_await yield_now();
    }
    if (stop_.cancelled()) break;
    if (child_failure_) {
      if (!co_await recover(std::exchange(child_failure_, nullptr))) break;
      continue;
    }
    std::unique_ptr<Envelope> envelope = mailbox_->try_pop();
    if (!envelope) {
      co_await Parked{*this};
      continue;
    }
    ++turn;
    if (meters_) meters_->messages->add();
    std::exception_ptr failure;
    try {
      const TraceSpan span(tracer_, "actor", envelope->name, track_);
      const Task<> handler = actor_->dispatch(*envelope);
      envelope.reset();  // the handler's frame owns the message now
      co_await handler;
    } catch (...) {
      failure = std::current_exception();
    }
    if (failure && !co_await recover(failure)) break;
  }
  co_await shut_down();
  // After the loop's own frame is gone, which it is when this job runs.
  strand_.post([weak = weak_from_this()] {
    if (const std::shared_ptr<ActorCell> self = weak.lock()) self->finish();
  });
}

/// False: the actor is to stop.
Task<bool> ActorCell::recover(std::exception_ptr failure) {
  const Supervision& rule = options_.supervision;
  for (;;) {
    const TimePoint now = strand_.now();
    std::erase_if(restarts_, [&](TimePoint at) { return now - at > rule.restart_window; });
    restarts_.push_back(now);
    const auto count = static_cast<int>(restarts_.size());
    if (meters_) meters_->failures->add();
    if (hooks_.on_failure) hooks_.on_failure({options_.name, describe(failure), rule.policy, count});
    failure = nullptr;
    if (rule.policy == Supervision::Policy::escalate && hooks_.escalate) hooks_.escalate();
    if (rule.policy != Supervision::Policy::restart || count > rule.restarts_max) co_return false;

    scope_->request_stop();
    auto empty = OneShot<Result<void>>::create();
    scope_->when_empty([empty] { empty->set(Result<void>()); });
    (void)co_await wait_until<void>(empty, saturating_add(strand_.now(), options_.stop_grace), stop_.token());
    scope_->destroy_children();
    actor_.reset();
    child_failure_ = nullptr;

    Duration backoff = rule.backoff_first;
    for (int i = 1; i < count && backoff < rule.backoff_max; ++i) backoff *= 2;
    if (!co_await sleep_for(strand_, std::min(backoff, rule.backoff_max), stop_.token())) co_return false;
    fresh_scope();
    try {
      build();
      if (meters_) meters_->restarts->add();
      co_return true;
    } catch (...) {
      failure = std::current_exception();
    }
  }
}

Task<> ActorCell::shut_down() {
  mailbox_->close();
  scope_->request_stop();
  if (actor_) {
    std::exception_ptr failure;
    try {
      co_await actor_->stop_hook();
    } catch (...) {
      failure = std::current_exception();
    }
    if (failure && hooks_.on_failure) {
      hooks_.on_failure({options_.name, describe(failure), Supervision::Policy::stop, 0});
    }
  }
  auto empty = OneShot<Result<void>>::create();
  scope_->when_empty([empty] { empty->set(Result<void>()); });
  (void)co_await wait_until<void>(empty, saturating_add(strand_.now(), options_.stop_grace));
}

void ActorCell::request_stop(Job stopped) {
  strand_.post([weak = weak_from_this(), stopped = std::move(stopped)]() mutable {
    const std::shared_ptr<ActorCell> self = weak.lock();
    if (!self) return;
    if (self->finished_) {
      stopped();
      return;
    }
    self->on_stopped_.push_back(std::move(stopped));
    self->begin_stop();
  });
}

void ActorCell::begin_stop() {
  if (stop_.cancelled()) return;
  stop_.cancel();
  scope_->request_stop();
  grace_timer_ =
      strand_.post_at(saturating_add(strand_.now(), options_.stop_grace), [weak = weak_from_this()] {
        if (const std::shared_ptr<ActorCell> self = weak.lock()) self->finish();
      });
  resume_parked();
}

void ActorCell::finish() {
  if (finished_) return;
  finished_ = true;
  stop_.cancel();
  parked_ = nullptr;
  if (grace_timer_ != 0) strand_.cancel_timer(grace_timer_);
  mailbox_->close();
  loop_scope_.destroy_children();
  scope_->destroy_children();
  actor_.reset();
  factory_ = nullptr;
  for (Job& job : std::exchange(on_stopped_, {})) job();
}

void ActorCell::destroy_now() {
  finish();
}

}  // namespace helios::runtime::detail
