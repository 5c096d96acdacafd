#pragma once
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "runtime/actor.hpp"
#include "runtime/mailbox.hpp"
#include "runtime/sleep.hpp"

namespace helios::runtime {

enum class Supervision {
  stop,      // the actor stops; its pending asks get an error
  restart,   // a new one takes over the mailbox after a back-off; needs spawn_from()
  escalate,  // as stop, and ActorSystem::failed() tells the program
};

struct ActorOptions {
  std::string name;
  std::int64_t mailbox_capacity = 1024;  // messages
  Supervision supervision = Supervision::escalate;
  int restarts_max = 5;  // in a row without a handled message; then as stop
  Duration backoff_first = std::chrono::milliseconds(10), backoff_max = std::chrono::seconds(5);
  Duration stop_deadline = std::chrono::seconds(30);  // for on_stop()
};

namespace detail {

/// What the system does with an actor without knowing its type.
struct CellControl {
  virtual ~CellControl() = default;
  virtual void start_stop() = 0;        // any thread; idempotent
  virtual bool stopped() const = 0;
};

template <class Derived, class List>
class ActorCell;

}  // namespace detail

/// A spawned actor. Copyable; keeps the cell, not the actor, alive.
template <class Derived>
class ActorRef;

/// Owns the actors of a program; stops them in reverse order of their spawning.
class ActorSystem {
 public:
  /// executor outlives the system; metrics and tracer may be null.
  explicit ActorSystem(Executor& executor, Registry* metrics = nullptr, Tracer* tracer = nullptr)
      : executor_(executor), metrics_(metrics), tracer_(tracer) {}
  ~ActorSystem() { stop(); }
  ActorSystem(const ActorSystem&) = delete;
  ActorSystem& operator=(const ActorSystem&) = delete;

  template <class Derived, class... Args>
  ActorRef<Derived> spawn(ActorOptions options, Args&&... args);
  /// make() builds the actor, again after each failure under Supervision::restart.
  template <class Derived>
  ActorRef<Derived> spawn_from(ActorOptions options, std::function<std::unique_ptr<Derived>()> make);

  /// Stops every actor, the last spawned first, and returns when all are gone. Not from an actor. Idempotent.
  void stop();
  /// The name and error of the first actor whose failure escalated; empty while all is well.
  std::string failed() const {
    const std::lock_guard lock(mutex_);
    return failure_;
  }
  void report_failure(const std::string& text) {
    const std::lock_guard lock(mutex_);
    if (failure_.empty()) failure_ = text;
  }

  Executor& executor() const noexcept { return executor_; }
  Registry* metrics() const noexcept { return metrics_; }
  Tracer* tracer() const noexcept { return tracer_; }

 private:
  Executor& executor_;
  Registry* metrics_;
  Tracer* tracer_;
  mutable std::mutex mutex_;
  std::string failure_;
  std::vector<std::shared_ptr<detail::CellControl>> cells_;
};

namespace detail {

/// One message type's way into a cell.
template <class Cell, class Msg>
struct CellInbox : Inbox<Msg> {
  Result<void> put(Msg& message, PortBase& port, bool urgent) final {
    return static_cast<Cell*>(this)->put_message(message, port, urgent);
  }
};

template <class Derived, class... Msgs>
class ActorCell<Derived, std::variant<std::monostate, Msgs...>> final
    : public CellBase,
      public CellControl,
      public CellInbox<ActorCell<Derived, std::variant<std::monostate, Msgs...>>, Msgs>...,
      public std::enable_shared_from_this<ActorCell<Derived, std::variant<std::monostate, Msgs...>>> {
  using Envelope = std::variant<std::monostate, Msgs...>;
  using Box = Mailbox<Envelope>;
  struct Port final : PortBase {
    explicit Port(Box& box) : port(box) {}
    typename Box::Port port;
  };

 public:
  ActorCell(ActorSystem& system, ActorOptions options, std::function<std::unique_ptr<Derived>()> make)
      : system_(system), options_(std::move(options)), make_(std::move(make)), mailbox_(options_.mailbox_capacity),
        context_(std::make_shared<ActorContext>()) {
    context_->strand = Strand::create(system.executor());
    context_->tracer = system.tracer();
    context_->metrics = system.metrics();
    context_->name = options_.name;
    if (context_->tracer) track_ = context_->tracer->track("actor/" + options_.name);
    if (context_->metrics) {
      depth_ = &context_->metrics->gauge("helios_mailbox_depth", "Messages waiting", {{"actor", options_.name}});
      refused_ = &context_->metrics->counter("helios_mailbox_refused_total", "Messages refused: mailbox full",
                                             {{"actor", options_.name}});
    }
  }

  void start(std::unique_ptr<Derived> first) {
    context_->cell = this->shared_from_this();
    actor_ = std::move(first);
    open_scope();
    actor_->attach(context_);
    main_ = std::make_unique<AsyncScope>(context_->strand);
    main_->spawn(run(this));
  }

  std::unique_ptr<PortBase> open_port() override { return std::make_unique<Port>(mailbox_); }
  void wait_for_room(std::shared_ptr<Waiter> waiter) override { mailbox_.wait_for_room(std::move(waiter)); }
  const std::string& name() const override { return options_.name; }

  void start_stop() override {
    if (stopping_.exchange(true)) return;
    context_->strand->post([self = this->shared_from_this()] { self->begin_stop(); });
  }
  bool stopped() const override { return stopped_.load(std::memory_order_acquire); }

  template <class Msg>
  Result<void> put_message(Msg& message, PortBase& port, bool urgent) {
    Envelope envelope(std::in_place_type<Msg>, std::move(message));
    switch (mailbox_.put(static_cast<Port&>(port).port, envelope, urgent)) {
      case Box::Put::done: return {};
      case Box::Put::full:
        message = std::move(std::get<Msg>(envelope));
        if (refused_) refused_->increment();
        return helios::fail(Errc::busy, "the mailbox of " + options_.name + " is full (" +
                                            std::to_string(mailbox_.capacity()) + " messages): retry later");
      case Box::Put::closed: message = std::move(std::get<Msg>(envelope)); break;
    }
    return helios::fail(Errc::dropped, options_.name + " has stopped");
  }

 private:
  void open_scope() {
    context_->scope = std::make_shared<AsyncScope>(context_->strand, [this](std::exception_ptr e) { fail_now(e); });
  }

  static Task<> run(ActorCell* self) {
    for (;;) {
      std::exception_ptr error;
      try {
        co_await self->actor_->on_start();
        co_await self->serve();
      } catch (...) {
        error = std::current_exception();
      }
      if (!error) co_return;  // closed
      if (!co_await self->recover(error)) co_return;
    }
  }
  Task<> serve() {
    while (!mailbox_.closed()) {
      co_await mailbox_.receive();
      Envelope envelope;
      while (!mailbox_.closed() && mailbox_.try_take(envelope)) {
        if (depth_) depth_->set(static_cast<double>(mailbox_.depth()));
        co_await dispatch(std::move(envelope));
        failures_in_a_row_ = 0;
        envelope = {};
      }
    }
  }
  Task<> dispatch(Envelope envelope) {
    const TimePoint start = context_->strand->now();
    std::string_view message_name;
    co_await std::visit(
        [this, &message_name](auto& message) -> Task<> {
          using Msg = std::decay_t<decltype(message)>;
          if constexpr (std::is_same_v<Msg, std::monostate>) {
            return nothing();
          } else {
            message_name = type_name<Msg>();
            return actor_->on(std::move(message));
          }
        },
        envelope);
    if (context_->tracer) context_->tracer->complete(track_, message_name, start, context_->strand->now());
  }
  static Task<> nothing() { co_return; }

  /// True when a new actor serves on.
  Task<bool> recover(std::exception_ptr error) {
    const std::string text = describe(error);
    if (options_.supervision == Supervision::restart && make_ && failures_in_a_row_ < options_.restarts_max) {
      Duration backoff = options_.backoff_first;
      for (int i = 0; i < failures_in_a_row_ && backoff < options_.backoff_max; ++i) backoff *= 2;
      ++failures_in_a_row_;
      context_->scope->clear();
      actor_.reset();  // its pending replies are dropped: every asker hears of it
      (void)co_await sleep_for(std::min(backoff, options_.backoff_max));
      actor_ = make_();
      open_scope();
      actor_->attach(context_);
      co_return true;
    }
    if (options_.supervision == Supervision::escalate) system_.report_failure(options_.name + ": " + text);
    start_stop();
    co_return false;
  }
  /// A child of the scope threw: the actor cannot be trusted; its main loop is replaced by its recovery.
  void fail_now(std::exception_ptr error) {
    context_->strand->post([self = this->shared_from_this(), error] {
      if (self->stopping_.load() || !self->actor_) return;
      self->main_ = std::make_unique<AsyncScope>(self->context_->strand);
      self->main_->spawn(recover_and_run(self.get(), error));
    });
  }
  static Task<> recover_and_run(ActorCell* self, std::exception_ptr error) {
    if (co_await self->recover(error)) co_await run(self);
  }
  static std::string describe(std::exception_ptr error) {
    try {
      std::rethrow_exception(error);
    } catch (const std::exception& e) {
      return e.what();
    } catch (...) {
      return "an exception that is no std::exception";
    }
  }

  void begin_stop() {
    mailbox_.close();
    main_.reset();  // the handler that is suspended, if any, ends here; its reply says dropped
    Envelope envelope;
    while (mailbox_.try_take(envelope)) envelope = {};  // pending asks hear "dropped"
    context_->scope->request_stop();
    main_ = std::make_unique<AsyncScope>(context_->strand);
    main_->spawn(finish(this));
    timer_ = system_.executor().post_at(context_->strand->now() + options_.stop_deadline,
                                        [weak = this->weak_from_this()] {
                                          if (auto self = weak.lock()) self->context_->strand->post([self] { self->destroy(); });
                                        });
  }
  static Task<> finish(ActorCell* self) {
    if (self->actor_) co_await self->actor_->on_stop();
    self->context_->strand->post([cell = self->shared_from_this()] { cell->destroy(); });
  }
  void destroy() {
    if (stopped_.load()) return;
    system_.executor().cancel_timer(timer_);
    main_.reset();
    context_->scope->clear();
    actor_.reset();
    context_->cell.reset();
    stopped_.store(true, std::memory_order_release);
  }

  ActorSystem& system_;
  const ActorOptions options_;
  std::function<std::unique_ptr<Derived>()> make_;
  Box mailbox_;
  std::shared_ptr<ActorContext> context_;
  std::unique_ptr<Derived> actor_;
  std::unique_ptr<AsyncScope> main_;  // the message loop
  int failures_in_a_row_ = 0;
  TimerId timer_ = 0;
  std::atomic<bool> stopping_{false}, stopped_{false};
  Gauge* depth_ = nullptr;
  Counter* refused_ = nullptr;
  Tracer::Track track_ = 0;
};

}  // namespace detail

template <class Derived>
class ActorRef {
 public:
  using Cell = detail::ActorCell<Derived, typename Derived::Envelope>;
  explicit ActorRef(std::shared_ptr<Cell> cell) : cell_(std::move(cell)) {}

  template <class... Msgs>
  Address<Msgs...> address() const {
    return Address<Msgs...>(cell_);
  }
  /// Stops this actor alone; any thread, does not wait.
  void start_stop() const { cell_->start_stop(); }
  bool stopped() const { return cell_->stopped(); }

 private:
  std::shared_ptr<Cell> cell_;
};

template <class Derived, class... Args>
ActorRef<Derived> ActorSystem::spawn(ActorOptions options, Args&&... args) {
  auto cell = std::make_shared<typename ActorRef<Derived>::Cell>(*this, std::move(options), nullptr);
  cells_.push_back(cell);
  cell->start(std::make_unique<Derived>(std::forward<Args>(args)...));
  return ActorRef<Derived>(std::move(cell));
}

template <class Derived>
ActorRef<Derived> ActorSystem::spawn_from(ActorOptions options, std::function<std::unique_ptr<Derived>()> make) {
  auto first = make();
  auto cell = std::make_shared<typename ActorRef<Derived>::Cell>(*this, std::move(options), std::move(make));
  cells_.push_back(cell);
  cell->start(std::move(first));
  return ActorRef<Derived>(std::move(cell));
}

template <class Derived, class... Msgs>
template <class... Some>
Address<Some...> Actor<Derived, Msgs...>::self() const {
  using Cell = detail::ActorCell<Derived, Envelope>;
  return Address<Some...>(std::static_pointer_cast<Cell>(context_->cell));
}

}  // namespace helios::runtime
