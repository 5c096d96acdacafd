#include "runtime/async_scope.hpp"

#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "runtime/waiter.hpp"

namespace helios::runtime {

namespace {

/// The root of a child: owns the task, reports its end, and is destroyed by the scope.
struct Root {
  struct promise_type {
    Root get_return_object() noexcept { return {std::coroutine_handle<promise_type>::from_promise(*this)}; }
    std::suspend_always initial_suspend() const noexcept { return {}; }
    std::suspend_always final_suspend() const noexcept { return {}; }
    void return_void() const noexcept {}
    void unhandled_exception() const noexcept { std::terminate(); }  // run_child catches everything
  };
  std::coroutine_handle<promise_type> handle;
};

}  // namespace

struct AsyncScope::State : std::enable_shared_from_this<AsyncScope::State> {
  std::shared_ptr<Executor> strand;
  OnException on_exception;
  mutable std::mutex mutex;
  bool closed = false;
  std::uint64_t next = 1;
  std::map<std::uint64_t, std::coroutine_handle<>> live;
  std::vector<std::shared_ptr<Waiter>> joiners;

  static Root run_child(State* state, Task<> child, std::uint64_t id) {
    try {
      co_await std::move(child);
    } catch (...) {
      if (state->on_exception) state->on_exception(std::current_exception());
    }
    // The frame cannot destroy itself here: a job does it, if the scope is still there.
    state->strand->post([self = state->shared_from_this(), id] { self->forget(id); });
  }
  void start(std::uint64_t id) {
    std::coroutine_handle<> handle;
    {
      const std::lock_guard lock(mutex);
      const auto found = live.find(id);
      if (found == live.end()) return;
      handle = found->second;
    }
    handle.resume();
  }
  void forget(std::uint64_t id) {
    std::coroutine_handle<> handle;
    std::vector<std::shared_ptr<Waiter>> waiters;
    {
      const std::lock_guard lock(mutex);
      const auto found = live.find(id);
      if (found == live.end()) return;
      handle = found->second;
      live.erase(found);
      if (live.empty()) waiters.swap(joiners);
    }
    handle.destroy();
    for (const auto& waiter : waiters) waiter->wake();
  }
  void clear() noexcept {
    std::map<std::uint64_t, std::coroutine_handle<>> frames;
    std::vector<std::shared_ptr<Waiter>> waiters;
    {
      const std::lock_guard lock(mutex);
      closed = true;
      frames.swap(live);
      waiters.swap(joiners);
    }
    for (auto& [id, handle] : frames) handle.destroy();
    for (const auto& waiter : waiters) waiter->wake();
  }
};

AsyncScope::AsyncScope(std::shared_ptr<Executor> strand, OnException on_exception) : state_(std::make_shared<State>()) {
  state_->strand = std::move(strand);
  state_->on_exception = std::move(on_exception);
}

AsyncScope::~AsyncScope() { clear(); }

void AsyncScope::spawn(Task<> child) {
  std::uint64_t id = 0;
  {
    const std::lock_guard lock(state_->mutex);
    if (state_->closed) return;
    id = state_->next++;
    state_->live.emplace(id, State::run_child(state_.get(), std::move(child), id).handle);
  }
  state_->strand->post([state = state_, id] { state->start(id); });
}

Task<> AsyncScope::join() {
  struct Awaiter {
    State& state;
    WaiterHandle waiter;
    bool await_ready() const { return false; }
    bool await_suspend(std::coroutine_handle<> handle) {
      auto armed = waiter.arm(handle);
      const std::lock_guard lock(state.mutex);
      if (state.live.empty()) {
        waiter.reset();
        return false;
      }
      state.joiners.push_back(armed);
      return true;
    }
    void await_resume() noexcept { waiter.reset(); }
  };
  Awaiter awaiter{.state = *state_};
  co_await awaiter;
}

std::size_t AsyncScope::size() const {
  const std::lock_guard lock(state_->mutex);
  return state_->live.size();
}

void AsyncScope::clear() noexcept { state_->clear(); }

}  // namespace helios::runtime
