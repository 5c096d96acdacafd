#include "runtime/one_shot.hpp"

namespace helios::runtime::detail {

void OneShotBase::notify_locked() {
  if (!waiter_) return;
  executor_->post([self = shared_from_this()] {
    std::coroutine_handle<> waiter;
    {
      const std::lock_guard lock(self->mutex_);
      waiter = std::exchange(self->waiter_, nullptr);
    }
    if (waiter) waiter.resume();  // null: the frame was destroyed meanwhile
  });
}

bool OneShotBase::suspend(std::coroutine_handle<> waiter) {
  const std::lock_guard lock(mutex_);
  if (set_) return false;
  waiter_ = waiter;
  executor_ = &require_executor("a wait");
  return true;
}

void OneShotBase::abandon() noexcept {
  const std::lock_guard lock(mutex_);
  waiter_ = nullptr;
}

}  // namespace helios::runtime::detail
