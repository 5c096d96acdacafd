#pragma once
// For awaiters outside this folder that have a completion of their own: resume once, on the waiting coroutine's
// executor, and never after its frame is gone. OneShot is the better choice where a value travels.

#include <coroutine>
#include <memory>
#include <mutex>
#include <utility>

#include "runtime/executor.hpp"

namespace helios::runtime {

class Waiter : public std::enable_shared_from_this<Waiter> {
 public:
  explicit Waiter(std::coroutine_handle<> handle)
      : handle_(handle), executor_(detail::require_executor("a wait")) {}

  /// Any thread, any number of times: the first one resumes.
  void wake() {
    const std::lock_guard lock(mutex_);
    if (fired_ || !handle_) return;
    fired_ = true;
    executor_.post([self = shared_from_this()] {
      std::coroutine_handle<> handle;
      {
        const std::lock_guard inner(self->mutex_);
        handle = std::exchange(self->handle_, nullptr);
      }
      if (handle) handle.resume();
    });
  }
  /// On the executor, when the awaiter is destroyed or has resumed.
  void abandon() noexcept {
    const std::lock_guard lock(mutex_);
    handle_ = nullptr;
  }
  /// Valid until abandon().
  Executor& executor() const noexcept { return executor_; }

 private:
  std::mutex mutex_;
  std::coroutine_handle<> handle_;
  Executor& executor_;
  bool fired_ = false;
};

/// Owns a Waiter for the life of an awaiter, and its deadline's timer.
class WaiterHandle {
 public:
  WaiterHandle() = default;
  WaiterHandle(const WaiterHandle&) = delete;
  WaiterHandle& operator=(const WaiterHandle&) = delete;
  ~WaiterHandle() { reset(); }

  const std::shared_ptr<Waiter>& arm(std::coroutine_handle<> handle) {
    waiter_ = std::make_shared<Waiter>(handle);
    return waiter_;
  }
  void wake_at(TimePoint deadline) {
    timer_ = waiter_->executor().root().post_at(deadline, [waiter = waiter_] { waiter->wake(); });
  }
  void reset() noexcept {
    if (!waiter_) return;
    waiter_->abandon();
    if (timer_ != 0) waiter_->executor().root().cancel_timer(timer_);
    timer_ = 0;
    waiter_.reset();
  }

 private:
  std::shared_ptr<Waiter> waiter_;
  TimerId timer_ = 0;
};

}  // namespace helios::runtime
