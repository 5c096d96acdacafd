#pragma once
// Owns the coroutines it starts, so that nothing is detached: who owns the scope can stop, join and destroy
// them.

#include <cstddef>
#include <exception>
#include <functional>
#include <memory>

#include "runtime/cancellation.hpp"
#include "runtime/executor.hpp"
#include "runtime/result.hpp"
#include "runtime/task.hpp"

namespace helios::runtime {

/// Children run on one executor, normally a strand. Declare it after everything its children use: destruction
/// destroys children that are still suspended, and must happen on the strand or after the executor stopped.
class AsyncScope {
 public:
  static constexpr std::size_t kDefaultChildrenMax = 65'536;

  explicit AsyncScope(Executor& executor, std::size_t children_max = kDefaultChildrenMax);
  ~AsyncScope();
  AsyncScope(const AsyncScope&) = delete;
  AsyncScope& operator=(const AsyncScope&) = delete;

  /// Starts `task` on the executor, never inline; any thread. Errors: busy (too many children), dropped (the
  /// scope is closed); the task is then destroyed unrun.
  Result<void> spawn(Task<> task);
  /// Resumes when no child is left; spawn stays possible. Rethrows the first exception of a child unless
  /// on_exception is set.
  Task<> join();
  /// Cancels token(). Children end at their next look at it; more may be spawned and see it cancelled.
  void request_stop();
  CancelToken token() const;
  bool stop_requested() const;
  std::size_t children() const;
  Executor& executor() const;

  /// Where exceptions of children go, on the executor. Set before the first spawn.
  void on_exception(std::function<void(std::exception_ptr)> handler);
  /// Calls `job` once no child is left: inline if that is so now, else on the thread that ends the last one.
  void when_empty(Job job);
  /// Refuses further spawns and destroys all suspended children. Only on the strand and not from a child, or
  /// after the executor stopped.
  void destroy_children();

 private:
  struct State;
  struct Root;
  static Root run_child(Task<> task);
  std::shared_ptr<State> state_;
};

}  // namespace helios::runtime
