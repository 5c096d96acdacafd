#pragma once
// The seeded simulation: one thread, virtual time, the next runnable job picked by the seed.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "runtime/executor.hpp"

namespace helios::runtime {

/// The same program with the same seed gives the same trace, byte for byte. Not thread-safe: everything
/// happens on the thread that steps it.
class SimExecutor final : public Executor {
 public:
  static constexpr std::uint64_t kDefaultStepLimit = 50'000'000;

  explicit SimExecutor(std::uint64_t seed);
  ~SimExecutor() override;
  SimExecutor(const SimExecutor&) = delete;
  SimExecutor& operator=(const SimExecutor&) = delete;

  void post(Job job) override;
  TimerId post_at(TimePoint when, Job job) override;
  void cancel_timer(TimerId id) override;
  TimePoint now() const override;
  std::size_t turn_limit() const override { return 1; }  // the seed decides after every job
  bool wait(Latch& latch) override;

  /// Runs one job; with none runnable, virtual time moves to the next timer first. False: nothing is left.
  bool step();
  /// Steps until nothing is left, timers included. Returns the steps; throws std::runtime_error over the
  /// limit.
  std::uint64_t run_until_idle(std::uint64_t step_limit = kDefaultStepLimit);
  /// Runs what is runnable at the present virtual time; timers of the future stay.
  std::uint64_t run_ready(std::uint64_t step_limit = kDefaultStepLimit);
  /// Runs everything due within `duration`; now() moves on by exactly that.
  std::uint64_t run_for(Duration duration, std::uint64_t step_limit = kDefaultStepLimit);

  /// Destroys all jobs and timers unrun; later ones too. For tests of teardown.
  void drop_all();

  /// Adds a line of the program's own to the trace.
  void note(std::string_view line);
  /// One line per step and note: virtual nanoseconds, what. The first 4 MiB are kept; the hash covers all.
  const std::string& trace() const;
  std::uint64_t trace_hash() const;
  std::uint64_t steps() const;
  /// The simulation's random numbers, for workloads that want to vary with the seed.
  std::uint64_t random();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace helios::runtime
