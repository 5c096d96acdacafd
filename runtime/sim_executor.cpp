#include "runtime/sim_executor.hpp"

#include <stdexcept>
#include <utility>
#include <vector>

#include "runtime/latch.hpp"
#include "runtime/timer_queue.hpp"

namespace helios::runtime {

namespace {

constexpr std::size_t kTraceBytesMax = std::size_t{4} << 20;

}  // namespace

struct SimExecutor::Impl {
  std::uint64_t random() {  // splitmix64: Steele, Lea, Flood 2014
    std::uint64_t z = (state += 0x9e3779b97f4a7c15ULL);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
  }

  void add_line(std::string_view kind, std::string_view text) {
    std::string line = std::to_string(now.time_since_epoch().count());
    line += ' ';
    line += kind;
    line += ' ';
    line += text;
    line += '\n';
    for (const char c : line) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;  // FNV-1a
    if (trace.size() + line.size() <= kTraceBytesMax) trace += line;
  }

  /// Timers that are due become runnable, in order; the seed then picks among all.
  void collect_due() {
    for (;;) {
      std::pair<TimerId, Job> due = timers.pop_due(now);
      if (due.first == 0) return;
      runnable.emplace_back(next_job++, std::move(due.second));
    }
  }

  bool run_one(SimExecutor& self) {
    collect_due();
    if (runnable.empty()) return false;
    const std::size_t pick = random() % runnable.size();
    std::pair<std::uint64_t, Job> next = std::move(runnable[pick]);
    runnable[pick] = std::move(runnable.back());
    runnable.pop_back();
    ++steps;
    add_line("run", std::to_string(next.first) + " of " + std::to_string(runnable.size() + 1));
    const detail::CurrentExecutor current(self);
    next.second();
    return true;
  }

  std::uint64_t state;
  TimePoint now{};
  TimerQueue timers;
  std::vector<std::pair<std::uint64_t, Job>> runnable;
  std::uint64_t next_job = 1;
  std::uint64_t steps = 0;
  bool dropped = false;
  std::string trace;
  std::uint64_t hash = 0xcbf29ce484222325ULL;
};

SimExecutor::SimExecutor(std::uint64_t seed) : impl_(std::make_unique<Impl>()) {
  impl_->state = seed;
}
SimExecutor::~SimExecutor() {
  drop_all();
}

void SimExecutor::post(Job job) {
  if (impl_->dropped) return;
  impl_->runnable.emplace_back(impl_->next_job++, std::move(job));
}

TimerId SimExecutor::post_at(TimePoint when, Job job) {
  if (when == kNever || impl_->dropped) return 0;
  return impl_->timers.add(when, std::move(job));
}

void SimExecutor::cancel_timer(TimerId id) {
  const Job cancelled = impl_->timers.cancel(id);
}
TimePoint SimExecutor::now() const {
  return impl_->now;
}

bool SimExecutor::wait(Latch& latch) {
  for (std::uint64_t i = 0; !latch.is_open(); ++i) {
    if (i >= kDefaultStepLimit || !step()) return latch.is_open();
  }
  return true;
}

bool SimExecutor::step() {
  if (impl_->run_one(*this)) return true;
  if (impl_->timers.empty()) return false;
  impl_->now = impl_->timers.earliest();
  return impl_->run_one(*this);
}

std::uint64_t SimExecutor::run_until_idle(std::uint64_t step_limit) {
  std::uint64_t done = 0;
  while (step()) {
    if (++done > step_limit) throw std::runtime_error("simulation: not idle within the step limit");
  }
  return done;
}

std::uint64_t SimExecutor::run_ready(std::uint64_t step_limit) {
  std::uint64_t done = 0;
  while (impl_->run_one(*this)) {
    if (++done > step_limit) throw std::runtime_error("simulation: not idle within the step limit");
  }
  return done;
}

std::uint64_t SimExecutor::run_for(Duration duration, std::uint64_t step_limit) {
  const TimePoint end = saturating_add(impl_->now, duration);
  std::uint64_t done = 0;
  for (;;) {
    done += run_ready(step_limit - done);
    if (impl_->timers.earliest() > end) break;
    impl_->now = impl_->timers.earliest();
  }
  impl_->now = end;
  return done;
}

void SimExecutor::drop_all() {
  impl_->dropped = true;
  std::vector<std::pair<std::uint64_t, Job>> jobs;
  jobs.swap(impl_->runnable);
  jobs.clear();
  impl_->timers.clear();
}

void SimExecutor::note(std::string_view line) {
  impl_->add_line("note", line);
}
const std::string& SimExecutor::trace() const {
  return impl_->trace;
}
std::uint64_t SimExecutor::trace_hash() const {
  return impl_->hash;
}
std::uint64_t SimExecutor::steps() const {
  return impl_->steps;
}
std::uint64_t SimExecutor::random() {
  return impl_->random();
}

}  // namespace helios::runtime
