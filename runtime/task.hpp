#pragma once
// A lazy coroutine. It starts when awaited, runs on the awaiter's executor, and ends in its awaiter by
// symmetric transfer: chains of any length use no stack.

#include <coroutine>
#include <exception>
#include <optional>
#include <type_traits>
#include <utility>

namespace helios::runtime {

template <class T = void>
class Task;

namespace detail {

struct TaskPromiseBase {
  struct FinalAwaiter {
    bool await_ready() const noexcept { return false; }
    template <class Promise>
    std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> self) const noexcept {
      return self.promise().continuation;
    }
    void await_resume() const noexcept {}
  };

  std::suspend_always initial_suspend() const noexcept { return {}; }
  FinalAwaiter final_suspend() const noexcept { return {}; }
  void unhandled_exception() noexcept { exception = std::current_exception(); }
  void rethrow() const {
    if (exception) std::rethrow_exception(exception);
  }

  std::coroutine_handle<> continuation = std::noop_coroutine();
  std::exception_ptr exception;
};

template <class T>
struct TaskPromise : TaskPromiseBase {
  Task<T> get_return_object() noexcept;
  template <class U>
    requires std::is_constructible_v<T, U&&>
  void return_value(U&& result) {
    value.emplace(std::forward<U>(result));
  }
  T take() {
    rethrow();
    return std::move(*value);
  }
  std::optional<T> value;
};

template <>
struct TaskPromise<void> : TaskPromiseBase {
  Task<void> get_return_object() noexcept;
  void return_void() const noexcept {}
  void take() const { rethrow(); }
};

}  // namespace detail

/// Move-only owner of a coroutine that was not awaited yet, or is suspended. `co_await task` starts it and
/// gives its result, once; an exception of the body comes out of the co_await. Destroying a suspended Task
/// destroys its frame and everything it awaits; waits of this folder allow that on the executor they would
/// resume on. Parameters of coroutines are taken by value.
template <class T>
class [[nodiscard]] Task {
 public:
  using promise_type = detail::TaskPromise<T>;
  using value_type = T;

  Task() noexcept = default;
  explicit Task(std::coroutine_handle<promise_type> handle) noexcept : handle_(handle) {}
  Task(Task&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Task& operator=(Task&& other) noexcept {
    if (this != &other) {
      if (handle_) handle_.destroy();
      handle_ = std::exchange(other.handle_, nullptr);
    }
    return *this;
  }
  Task(const Task&) = delete;
  Task& operator=(const Task&) = delete;
  ~Task() {
    if (handle_) handle_.destroy();
  }

  explicit operator bool() const noexcept { return handle_ != nullptr; }

  struct Awaiter {
    std::coroutine_handle<promise_type> handle;
    bool await_ready() const noexcept { return false; }
    std::coroutine_handle<> await_suspend(std::coroutine_handle<> awaiting) const noexcept {
      handle.promise().continuation = awaiting;
      return handle;
    }
    T await_resume() const { return handle.promise().take(); }
  };
  Awaiter operator co_await() const noexcept { return Awaiter{handle_}; }

 private:
  std::coroutine_handle<promise_type> handle_;
};

namespace detail {

template <class T>
Task<T> TaskPromise<T>::get_return_object() noexcept {
  return Task<T>(std::coroutine_handle<TaskPromise<T>>::from_promise(*this));
}
inline Task<void> TaskPromise<void>::get_return_object() noexcept {
  return Task<void>(std::coroutine_handle<TaskPromise<void>>::from_promise(*this));
}

}  // namespace detail
}  // namespace helios::runtime
