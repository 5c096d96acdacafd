#pragma once
// The real executor: a pool of threads on an Asio io_context, which stays inside the .cpp.

#include <cstddef>
#include <memory>

#include "runtime/executor.hpp"

namespace boost::asio {
class io_context;
}

namespace helios::runtime {

/// Jobs run on `threads` threads (at least 1), in parallel; use a Strand where order or exclusion matters.
/// Destruction stops it: stop ActorSystems first.
class ThreadExecutor final : public Executor {
 public:
  explicit ThreadExecutor(std::size_t threads);
  ~ThreadExecutor() override;
  ThreadExecutor(const ThreadExecutor&) = delete;
  ThreadExecutor& operator=(const ThreadExecutor&) = delete;

  void post(Job job) override;
  TimerId post_at(TimePoint when, Job job) override;
  void cancel_timer(TimerId id) override;
  TimePoint now() const override { return Clock::now(); }
  bool wait(Latch& latch) override;

  /// Ends the threads after their current jobs and joins them; queued jobs and timers are destroyed unrun.
  /// Not from one of the threads. Calling it again is a no-op.
  void stop();

  /// The pool's io_context, for code that does socket I/O on it.
  boost::asio::io_context& io_context();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace helios::runtime
