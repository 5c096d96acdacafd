#pragma once
#include <functional>
#include <memory>

#include "runtime/clock.hpp"
#include "runtime/executor.hpp"
#include "runtime/result.hpp"
#include "runtime/task.hpp"

namespace helios::gpu {

/// A point in a stream's order, or the end of a copy. Copyable; all copies share one state. Thread-safe.
class Event {
 public:
  /// Not done until complete() is called.
  Event();
  /// An event that is done already.
  static Event completed_with(Result<void> status);

  bool done() const;
  /// The outcome once done; busy before.
  Result<void> status() const;
  /// Called once with the outcome on the completing thread, or at once on this one when already done.
  void on_complete(std::function<void(const Result<void>&)> call) const;
  /// Resumes on the caller's strand. Errors: the work's own, deadline_exceeded (the work goes on).
  runtime::Task<Result<void>> completed(runtime::Executor& executor, runtime::TimePoint deadline) const;
  /// Blocks this thread: for programs without actors. Errors: the work's own, deadline_exceeded.
  Result<void> wait_for(runtime::Duration limit) const;

  /// For streams and copy engines; the first call counts.
  void complete(Result<void> status) const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace helios::gpu
