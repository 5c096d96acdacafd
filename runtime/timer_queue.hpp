#pragma once
// Timers in order of time, then of creation. Not thread-safe: its executor guards it.

#include <map>
#include <unordered_map>
#include <utility>

#include "runtime/executor.hpp"

namespace helios::runtime {

class TimerQueue {
 public:
  TimerId add(TimePoint when, Job job);
  /// The cancelled job, so that the caller can destroy it without its lock; empty when it fired.
  Job cancel(TimerId id);
  /// Time of the first timer; kNever without any.
  TimePoint earliest() const;
  /// The first timer that is due at `now`; id 0 when none is.
  std::pair<TimerId, Job> pop_due(TimePoint now);
  bool empty() const { return jobs_.empty(); }
  void clear();

 private:
  std::map<std::pair<TimePoint, TimerId>, Job> jobs_;
  std::unordered_map<TimerId, TimePoint> times_;
  TimerId next_id_ = 1;
};

}  // namespace helios::runtime
