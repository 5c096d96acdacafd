#include "runtime/async_scope.hpp"

#include <coroutine>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "runtime/one_shot.hpp"

namespace helios::runtime {

struct AsyncScope::State {
  State(Executor& e, std::size_t max) : executor(e), children_max(max) {}

  void finish(std::uint64_t id, std::coroutine_handle<> root) {
    root.destroy();
    std::vector<Job> waiting;
    {
      const std::lock_guard lock(mutex);
      children.erase(id);
      if (children.empty()) waiting.swap(when_empty);
    }
    for (Job& job : waiting) job();
  }

  void fail(std::exception_ptr exception) {
    if (on_exception) return on_exception(std::move(exception));
    const std::lock_guard lock(mutex);
    if (!first_exception) first_exception = std::move(exception);
  }

  Executor& executor;
  const std::size_t children_max;
  CancelSource stop;
  std::function<void(std::exception_ptr)> on_exception;

  mutable std::mutex mutex;
  std::map<std::uint64_t, std::coroutine_handle<>> children;
  std::uint64_t next_id = 1;
  bool closed = false;
  std::exception_ptr first_exception;
  std::vector<Job> when_empty;
};

/// The outermost frame of a child.
struct AsyncScope::Root {
  struct promise_type {
    struct Final {
      bool await_ready() const noexcept { return false; }
      void await_suspend(std::coroutine_handle<promise_type> self) const noexcept {
        const std::shared_ptr<State> scope = std::move(self.promise().state);
        scope->finish(self.promise().id, self);
      }
      void await_resume() const noexcept {}
    };
    Root get_return_object() { return Root{std::coroutine_handle<promise_type>::from_promise(*this)}; }
    std::suspend_always initial_suspend() const noexcept { return {}; }
    Final final_suspend() const noexcept { return {}; }
    void return_void() const noexcept {}
    void unhandled_exception() { state->fail(std::current_exception()); }

    std::shared_ptr<State> state;
    std::uint64_t id = 0;
  };
  std::coroutine_handle<promise_type> handle;
};

AsyncScope::Root AsyncScope::run_child(Task<> task) {
  co_await task;
}

AsyncScope::AsyncScope(Executor& executor, std::size_t children_max)
    : state_(std::make_shared<State>(executor, children_max)) {}

AsyncScope::~AsyncScope() {
  state_->stop.cancel();
  destroy_children();
}

Result<void> AsyncScope::spawn(Task<> task) {
  const Root root = run_child(std::move(task));
  std::uint64_t id = 0;
  Result<void> refused;
  {
    const std::lock_guard lock(state_->mutex);
    if (state_->closed) {
      refused = fail(Errc::dropped, "the scope is closed");
    } else if (state_->children.size() >= state_->children_max) {
      refused = fail(Errc::busy, "the scope has its " + std::to_string(state_->children_max) + " children");
    } else {
      id = state_->next_id++;
      root.handle.promise().state = state_;
      root.handle.promise().id = id;
      state_->children.emplace(id, root.handle);
    }
  }
  if (!refused) {
    root.handle.destroy();
    return refused;
  }
  state_->executor.post([weak = std::weak_ptr<State>(state_), id] {
    const std::shared_ptr<State> state = weak.lock();
    if (!state) return;
    std::coroutine_handle<> child;
    {
      const std::lock_guard lock(state->mutex);
      const auto found = state->children.find(id);
      if (found != state->children.end()) child = found->second;
    }
    if (child) child.resume();  // null: destroyed before it started
  });
  return {};
}

Task<> AsyncScope::join() {
  const std::shared_ptr<State> state = state_;
  auto empty = OneShot<bool>::create();
  when_empty([empty] { empty->set(true); });
  co_await empty->wait();
  std::exception_ptr exception;
  {
    const std::lock_guard lock(state->mutex);
    exception = std::exchange(state->first_exception, nullptr);
  }
  if (exception) std::rethrow_exception(exception);
}

void AsyncScope::request_stop() {
  state_->stop.cancel();
}
CancelToken AsyncScope::token() const {
  return state_->stop.token();
}
bool AsyncScope::stop_requested() const {
  return state_->stop.cancelled();
}
Executor& AsyncScope::executor() const {
  return state_->executor;
}

std::size_t AsyncScope::children() const {
  const std::lock_guard lock(state_->mutex);
  return state_->children.size();
}

void AsyncScope::on_exception(std::function<void(std::exception_ptr)> handler) {
  state_->on_exception = std::move(handler);
}

void AsyncScope::when_empty(Job job) {
  {
    const std::lock_guard lock(state_->mutex);
    if (!state_->children.empty()) {
      state_->when_empty.push_back(std::move(job));
      return;
    }
  }
  job();
}

void AsyncScope::destroy_children() {
  std::map<std::uint64_t, std::coroutine_handle<>> children;
  std::vector<Job> waiting;
  {
    const std::lock_guard lock(state_->mutex);
    state_->closed = true;
    children.swap(state_->children);
    waiting.swap(state_->when_empty);
  }
  for (auto child = children.rbegin(); child != children.rend(); ++child) child->second.destroy();
  for (Job& job : waiting) job();
}

}  // namespace helios::runtime
