#pragma once
// From a plain thread into coroutines: blocks until the task is done.

#include <exception>
#include <optional>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include "runtime/async_scope.hpp"
#include "runtime/latch.hpp"
#include "runtime/strand.hpp"
#include "runtime/task.hpp"

namespace helios::runtime {

namespace detail {
template <class T>
Task<> store_result(Task<T> task, std::optional<T>* out) {
  out->emplace(co_await task);
}
/// Runs `task` on a strand of its own. False: the simulation has nothing left to run.
void run_blocking(Executor& executor, Task<> task);
}  // namespace detail

/// Runs `task` on a strand of its own over `executor` and blocks; not from a job of that executor. Rethrows
/// the task's exception. Under simulation it steps; when nothing is left to run it throws std::logic_error.
template <class T>
T sync_wait(Executor& executor, Task<T> task) {
  if constexpr (std::is_void_v<T>) {
    detail::run_blocking(executor, std::move(task));
  } else {
    std::optional<T> result;
    detail::run_blocking(executor, detail::store_result(std::move(task), &result));
    return std::move(*result);
  }
}

}  // namespace helios::runtime
