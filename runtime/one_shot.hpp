#pragma once
// One value from any thread to one waiting coroutine, which resumes on its own executor. Replies, timers,
// channels and device events are built on it.

#include <coroutine>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "runtime/cancellation.hpp"
#include "runtime/executor.hpp"
#include "runtime/result.hpp"
#include "runtime/task.hpp"

namespace helios::runtime {

namespace detail {

/// The waiter's side of OneShot, free of the value's type.
class OneShotBase : public std::enable_shared_from_this<OneShotBase> {
 public:
  virtual ~OneShotBase() = default;

 protected:
  /// `mutex_` held, value stored: posts the waiter's resumption if there is one.
  void notify_locked();
  /// False: the value is there, do not suspend.
  bool suspend(std::coroutine_handle<> waiter);
  /// The waiter's frame is being destroyed, on its executor or after that stopped.
  void abandon() noexcept;

  mutable std::mutex mutex_;
  bool set_ = false;

 private:
  std::coroutine_handle<> waiter_;
  Executor* executor_ = nullptr;  // valid while waiter_ is set: frames die before their executor
};

/// Cancels a timer when the wait is over.
class TimerGuard {
 public:
  TimerGuard() = default;
  TimerGuard(Executor& executor, TimePoint when, Job job)
      : executor_(&executor), id_(executor.post_at(when, std::move(job))) {}
  TimerGuard(const TimerGuard&) = delete;
  TimerGuard& operator=(const TimerGuard&) = delete;
  ~TimerGuard() {
    if (id_ != 0) executor_->cancel_timer(id_);
  }

 private:
  Executor* executor_ = nullptr;
  TimerId id_ = 0;
};

}  // namespace detail

/// Create with create(); share between setter and waiter. At most one coroutine waits, once.
template <class T>
class OneShot final : public detail::OneShotBase {
 public:
  static std::shared_ptr<OneShot> create() { return std::make_shared<OneShot>(); }

  /// Any thread, never blocks. The first value wins: false means that one was there and `value` was not
  /// taken.
  bool set(T value) {
    const std::lock_guard lock(mutex_);
    if (set_) return false;
    value_.emplace(std::move(value));
    set_ = true;
    notify_locked();
    return true;
  }

  bool is_set() const {
    const std::lock_guard lock(mutex_);
    return set_;
  }

  /// The value if it is there, taking it.
  std::optional<T> try_take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(value_, std::nullopt);
  }

  class Awaiter {
   public:
    explicit Awaiter(std::shared_ptr<OneShot> state) : state_(std::move(state)) {}
    Awaiter(const Awaiter&) = delete;
    Awaiter& operator=(const Awaiter&) = delete;
    ~Awaiter() {
      if (suspended_) state_->abandon();
    }
    bool await_ready() const { return state_->is_set(); }
    bool await_suspend(std::coroutine_handle<> waiter) {
      suspended_ = true;
      const std::shared_ptr<OneShot> keep = state_;  // this frame may go on elsewhere before suspend returns
      return keep->suspend(waiter);
    }
    T await_resume() {
      suspended_ = false;
      return *state_->try_take();
    }

   private:
    std::shared_ptr<OneShot> state_;
    bool suspended_ = false;
  };

  /// `co_await state->wait()`: the value, on the executor of the caller.
  Awaiter wait() { return Awaiter(std::static_pointer_cast<OneShot>(this->shared_from_this())); }

 private:
  std::optional<T> value_;
};

/// Waits for a Result with a deadline and a token; whichever comes first is the value, the others are
/// ignored. Errors of its own: deadline_exceeded, cancelled.
template <class T>
Task<Result<T>> wait_until(std::shared_ptr<OneShot<Result<T>>> state, TimePoint deadline,
                           CancelToken cancel = {}) {
  detail::TimerGuard timer(detail::require_executor("wait_until").root(), deadline, [state] {
    state->set(fail(Errc::deadline_exceeded, "no answer before the deadline"));
  });
  CancelCallback on_cancel(cancel, [state] { state->set(fail(Errc::cancelled, "the wait was cancelled")); });
  co_return co_await state->wait();
}

}  // namespace helios::runtime
