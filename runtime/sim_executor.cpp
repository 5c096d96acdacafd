#include "runtime/sim_executor.hpp"

namespace helios::runtime {

namespace {

std::uint64_t split_mix(std::uint64_t& state) {
  std::uint64_t z = (state += 0x9e3779b97f4a7c15ULL);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

}  // namespace

SimExecutor::SimExecutor(std::uint64_t seed) : order_state_(seed), workload_state_(~seed) {}

SimExecutor::~SimExecutor() {
  // Destroying a job may post another (a dropped reply wakes its asker): clear until nothing comes back.
  while (!ready_.empty() || !timers_.empty()) {
    auto ready = std::exchange(ready_, {});
    auto timers = std::exchange(timers_, {});
  }
}

void SimExecutor::post(Job job) { ready_.push_back({next_number_++, std::move(job)}); }

TimerId SimExecutor::post_at(TimePoint when, Job job) {
  const TimerId id = next_number_++;
  timers_.emplace(std::pair{when, id}, std::move(job));
  timer_times_.emplace(id, when);
  return id;
}

void SimExecutor::cancel_timer(TimerId id) {
  const auto found = timer_times_.find(id);
  if (found == timer_times_.end()) return;
  timers_.erase({found->second, id});
  timer_times_.erase(found);
}

bool SimExecutor::step() {
  if (ready_.empty()) {
    if (timers_.empty()) return false;
    auto due = timers_.extract(timers_.begin());
    now_ = std::max(now_, due.key().first);
    timer_times_.erase(due.key().second);
    ready_.push_back({due.key().second, std::move(due.mapped())});
  }
  run_entry(split_mix(order_state_) % ready_.size());
  return true;
}

void SimExecutor::run_entry(std::size_t index) {
  std::swap(ready_[index], ready_.back());
  Entry entry = std::move(ready_.back());
  ready_.pop_back();
  ++jobs_run_;
  const auto time = static_cast<std::uint64_t>(now_.time_since_epoch().count());
  for (const std::uint64_t word : {time, entry.number}) hash_ = (hash_ ^ word) * 1099511628211ULL;
  if (keep_trace_) trace_ += std::to_string(time) + ' ' + std::to_string(entry.number) + '\n';
  entry.job();
}

std::uint64_t SimExecutor::run_until_idle(std::uint64_t limit) {
  std::uint64_t ran = 0;
  while (ran < limit && step()) ++ran;
  return ran;
}

void SimExecutor::run_for(Duration span) {
  const TimePoint end = now_ + span;
  while (!ready_.empty() || (!timers_.empty() && timers_.begin()->first.first <= end)) step();
  now_ = end;
}

bool SimExecutor::drive(const std::function<bool()>& done, Duration limit) {
  const TimePoint end = now_ + limit;
  while (!done()) {
    if (now_ > end || !step()) return done();
  }
  return true;
}

std::uint64_t SimExecutor::random() { return split_mix(workload_state_); }

}  // namespace helios::runtime
