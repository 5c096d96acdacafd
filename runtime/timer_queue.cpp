#include "runtime/timer_queue.hpp"

namespace helios::runtime {

TimerId TimerQueue::add(TimePoint when, Job job) {
  const TimerId id = next_id_++;
  jobs_.emplace(std::pair(when, id), std::move(job));
  times_.emplace(id, when);
  return id;
}

Job TimerQueue::cancel(TimerId id) {
  const auto time = times_.find(id);
  if (time == times_.end()) return {};
  const auto found = jobs_.find({time->second, id});
  Job job = std::move(found->second);
  jobs_.erase(found);
  times_.erase(time);
  return job;
}

TimePoint TimerQueue::earliest() const {
  return jobs_.empty() ? kNever : jobs_.begin()->first.first;
}

std::pair<TimerId, Job> TimerQueue::pop_due(TimePoint now) {
  if (jobs_.empty() || jobs_.begin()->first.first > now) return {0, Job()};
  const auto first = jobs_.begin();
  std::pair<TimerId, Job> due(first->first.second, std::move(first->second));
  times_.erase(due.first);
  jobs_.erase(first);
  return due;
}

void TimerQueue::clear() {
  while (!jobs_.empty()) {  // a job's destructor may cancel other timers
    const Job job = pop_due(kNever).second;
  }
}

}  // namespace helios::runtime
