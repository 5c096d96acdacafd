#pragma once
// What stays while an actor is restarted: strand, mailbox, scope and the loop that runs handlers.

#include <atomic>
#include <chrono>
#include <coroutine>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/async_scope.hpp"
#include "runtime/mailbox.hpp"
#include "runtime/metrics.hpp"
#include "runtime/strand.hpp"
#include "runtime/supervision.hpp"
#include "runtime/task.hpp"
#include "runtime/trace.hpp"

namespace helios::runtime {

struct ActorOptions {
  std::string name;  // for metrics, traces and errors
  std::size_t mailbox_capacity = 1024;
  std::size_t mailbox_reserved = 256;  // more places, for tell_urgent only
  WhenFull when_full = WhenFull::refuse;
  Supervision supervision{};
  /// Time for the running handler, on_stop and the scope's children to end by themselves after stop; then
  /// they are destroyed where they wait.
  Duration stop_grace = std::chrono::seconds(5);
};

namespace detail {

/// The part of an actor that the loop knows.
class ActorBase {
 public:
  virtual ~ActorBase() = default;
  virtual Task<> dispatch(Envelope& envelope) = 0;
  virtual Task<> stop_hook() = 0;
};

class ActorCell : public std::enable_shared_from_this<ActorCell> {
 public:
  using Factory = std::function<std::unique_ptr<ActorBase>()>;
  struct Hooks {
    FailureHook on_failure;
    std::function<void()> escalate;
  };

  static std::shared_ptr<ActorCell> create(Executor& executor, ActorOptions options, Factory factory,
                                           Hooks hooks, Registry* metrics, Tracer* tracer);
  ~ActorCell();

  Strand& strand() noexcept { return strand_; }
  AsyncScope& scope() noexcept { return *scope_; }
  const std::shared_ptr<Mailbox>& mailbox() const noexcept { return mailbox_; }
  const ActorOptions& options() const noexcept { return options_; }
  Tracer* tracer() const noexcept { return tracer_; }

  /// Builds the first incarnation on this thread and starts the loop. Exceptions of the constructor come out.
  void start();
  /// Any thread; `stopped` runs once, when the actor and all its coroutines are gone.
  void request_stop(Job stopped);
  /// After the executor stopped, or on its thread under simulation: destroys everything where it is.
  void destroy_now();
  bool finished() const noexcept { return finished_; }

  /// The cell whose actor is being constructed on this thread.
  static ActorCell& under_construction();

 private:
  struct Parked;
  struct Meters;
  ActorCell(Executor& executor, ActorOptions options, Factory factory, Hooks hooks, Tracer* tracer);
  Task<> loop();
  Task<> handle(std::unique_ptr<Envelope> envelope);
  Task<bool> recover(std::exception_ptr failure);
  Task<> shut_down();
  void build();
  void fresh_scope();
  void resume_parked();
  void begin_stop();
  void finish();

  const ActorOptions options_;
  Factory factory_;  // with the constructor arguments; emptied when the actor is gone
  const Hooks hooks_;
  Tracer* const tracer_;
  int track_ = 0;
  std::unique_ptr<Meters> meters_;
  Strand strand_;
  std::shared_ptr<Mailbox> mailbox_;
  // All below: on the strand.
  CancelSource stop_;
  std::atomic<bool> finished_{false};  // written on the strand
  std::exception_ptr child_failure_;
  std::coroutine_handle<> parked_;
  std::vector<TimePoint> restarts_;
  std::vector<Job> on_stopped_;
  TimerId grace_timer_ = 0;
  std::unique_ptr<ActorBase> actor_;
  std::unique_ptr<AsyncScope> scope_;  // of the actor's children: they use actor_
  AsyncScope loop_scope_;              // of loop() alone
};

}  // namespace detail
}  // namespace helios::runtime
