#pragma once
// How a suspended coroutine is resumed from anywhere: at most once, on its own strand, and never after its
// frame is gone. Every awaiter of the runtime holds one.

#include <atomic>
#include <cassert>
#include <coroutine>
#include <memory>

#include "runtime/executor.hpp"

namespace helios::runtime {

class Waiter : public std::enable_shared_from_this<Waiter> {
 public:
  /// On the waiting coroutine's strand.
  static std::shared_ptr<Waiter> create(std::coroutine_handle<> handle) {
    auto executor = Executor::current();
    assert(executor && "co_await outside of a strand");
    return std::make_shared<Waiter>(handle, std::move(executor));
  }
  Waiter(std::coroutine_handle<> handle, std::shared_ptr<Executor> executor)
      : handle_(handle), executor_(std::move(executor)) {}

  /// Any thread, any number of times: the first one resumes.
  void wake() {
    if (fired_.exchange(true, std::memory_order_acq_rel)) return;
    executor_->post([self = shared_from_this()] {
      if (!self->abandoned_) self->handle_.resume();
    });
  }
  /// On the strand, when the awaiter is destroyed or has resumed.
  void abandon() noexcept {
    abandoned_ = true;
    fired_.store(true, std::memory_order_release);
  }
  Executor& executor() const noexcept { return *executor_; }

 private:
  std::coroutine_handle<> handle_;
  std::shared_ptr<Executor> executor_;
  std::atomic<bool> fired_{false};
  bool abandoned_ = false;  // strand only
};

/// Owns a Waiter for the life of an awaiter, and its deadline's timer.
class WaiterHandle {
 public:
  WaiterHandle() = default;
  WaiterHandle(const WaiterHandle&) = delete;
  WaiterHandle& operator=(const WaiterHandle&) = delete;
  ~WaiterHandle() { reset(); }

  const std::shared_ptr<Waiter>& arm(std::coroutine_handle<> handle) {
    waiter_ = Waiter::create(handle);
    return waiter_;
  }
  void wake_at(TimePoint deadline) {
    if (deadline == TimePoint::max()) return;
    timer_ = waiter_->executor().post_at(deadline, [waiter = waiter_] { waiter->wake(); });
  }
  void reset() noexcept {
    if (!waiter_) return;
    waiter_->abandon();
    if (timer_ != 0) waiter_->executor().cancel_timer(timer_);
    timer_ = 0;
    waiter_.reset();
  }

 private:
  std::shared_ptr<Waiter> waiter_;
  TimerId timer_ = 0;
};

}  // namespace helios::runtime
