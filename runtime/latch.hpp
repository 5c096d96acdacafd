#pragma once
// Opens once; plain threads block on it. Coroutines use OneShot.

#include <condition_variable>
#include <mutex>

#include "runtime/clock.hpp"

namespace helios::runtime {

class Latch {
 public:
  void open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    opened_.notify_all();  // under the lock: the waiter may destroy the latch as soon as it has it
  }
  bool is_open() const {
    const std::lock_guard lock(mutex_);
    return open_;
  }
  void wait() {
    std::unique_lock lock(mutex_);
    opened_.wait(lock, [this] { return open_; });
  }
  bool wait_until(TimePoint deadline) {
    std::unique_lock lock(mutex_);
    return opened_.wait_until(lock, deadline, [this] { return open_; });
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable opened_;
  bool open_ = false;
};

}  // namespace helios::runtime
