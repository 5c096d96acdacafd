#pragma once
// The seam between actors and threads: the real executor, the seeded simulation and strands look the same.

#include <cstddef>
#include <cstdint>

#include "runtime/clock.hpp"
#include "runtime/job.hpp"

namespace helios::runtime {

/// Names a timer of one executor; 0 is none.
using TimerId = std::uint64_t;

class Latch;
namespace detail {
class SenderTable;
}

/// Runs jobs. post, post_at, cancel_timer and now may be called from any thread (SimExecutor: from its one).
/// A job must not throw: an exception that leaves it ends the process.
class Executor {
 public:
  virtual ~Executor() = default;

  /// Runs `job` soon, never inline. After the executor stopped, jobs are destroyed without being run.
  virtual void post(Job job) = 0;
  /// Runs `job` at `when` or later. kNever: the job is destroyed and the id is 0.
  virtual TimerId post_at(TimePoint when, Job job) = 0;
  /// Destroys the job of a timer that did not fire yet; else a no-op (the job may be running now).
  virtual void cancel_timer(TimerId id) = 0;
  /// Real or virtual time.
  virtual TimePoint now() const = 0;
  /// The executor below all strands: timers of waits live there.
  virtual Executor& root() { return *this; }
  /// Jobs or messages that one actor or strand runs before others have a turn.
  virtual std::size_t turn_limit() const { return 64; }
  /// Blocks the calling thread, which runs no job, until `latch` is open. Simulation: runs jobs meanwhile,
  /// and returns false when nothing is left to run.
  virtual bool wait(Latch& latch) = 0;
};

/// The executor whose job runs on this thread now; inside a strand, that strand. Null on a plain thread.
/// Every wait of this folder resumes there.
Executor* current_executor() noexcept;

namespace detail {

/// Marks what runs on this thread for the scope of one job or batch.
class CurrentExecutor {
 public:
  explicit CurrentExecutor(Executor& executor, SenderTable* sender = nullptr) noexcept;
  ~CurrentExecutor();
  CurrentExecutor(const CurrentExecutor&) = delete;
  CurrentExecutor& operator=(const CurrentExecutor&) = delete;

 private:
  Executor* previous_executor_;
  SenderTable* previous_sender_;
};

/// current_executor(), or ends the process with a message: a co_await on a plain thread (use sync_wait).
Executor& require_executor(const char* what) noexcept;

}  // namespace detail
}  // namespace helios::runtime
