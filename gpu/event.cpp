#include "gpu/event.hpp"

#include <condition_variable>
#include <mutex>
#include <optional>
#include <vector>

#include "runtime/waiter.hpp"

namespace helios::gpu {

struct Event::State {
  std::mutex mutex;
  std::condition_variable changed;
  std::optional<Result<void>> status;
  std::vector<std::function<void(const Result<void>&)>> calls;
};

namespace {

struct Completion {
  Event event;
  runtime::TimePoint deadline;
  runtime::WaiterHandle waiter{};

  bool await_ready() const { return event.done(); }
  void await_suspend(std::coroutine_handle<> handle) {
    auto armed = waiter.arm(handle);
    waiter.wake_at(deadline);
    event.on_complete([armed](const Result<void>&) { armed->wake(); });
  }
  void await_resume() { waiter.reset(); }
};

}  // namespace

Event::Event() : state_(std::make_shared<State>()) {}

Event Event::completed_with(Result<void> status) {
  Event event;
  event.complete(std::move(status));
  return event;
}

bool Event::done() const {
  const std::lock_guard lock(state_->mutex);
  return state_->status.has_value();
}

Result<void> Event::status() const {
  const std::lock_guard lock(state_->mutex);
  if (!state_->status) return fail(Errc::busy, "the device work is not done");
  return *state_->status;
}

void Event::on_complete(std::function<void(const Result<void>&)> call) const {
  {
    const std::lock_guard lock(state_->mutex);
    if (!state_->status) {
      state_->calls.push_back(std::move(call));
      return;
    }
  }
  call(*state_->status);  // never changes once set
}

runtime::Task<Result<void>> Event::completed(runtime::Executor&, runtime::TimePoint deadline) const {
  return [](Event event, runtime::TimePoint limit) -> runtime::Task<Result<void>> {
    Completion completion{event, limit};
    co_await completion;
    if (!event.done())
      co_return fail(Errc::deadline_exceeded, "the device work did not end before its deadline");
    co_return event.status();
  }(*this, deadline);
}

Result<void> Event::wait_for(runtime::Duration limit) const {
  std::unique_lock lock(state_->mutex);
  if (!state_->changed.wait_for(lock, limit, [this] { return state_->status.has_value(); })) {
    return fail(Errc::deadline_exceeded, "the device work did not end in time");
  }
  return *state_->status;
}

void Event::complete(Result<void> status) const {
  std::vector<std::function<void(const Result<void>&)>> calls;
  {
    const std::lock_guard lock(state_->mutex);
    if (state_->status) return;
    state_->status = std::move(status);
    calls.swap(state_->calls);
  }
  state_->changed.notify_all();
  for (const auto& call : calls) call(*state_->status);
}

}  // namespace helios::gpu
