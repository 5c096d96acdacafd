#include "runtime/thread_executor.hpp"

#include <algorithm>
#include <atomic>
#include <boost/asio/defer.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/latch.hpp"
#include "runtime/timer_queue.hpp"

namespace helios::runtime {

namespace asio = boost::asio;

struct ThreadExecutor::Impl {
  explicit Impl(int threads_hint) : io(threads_hint), work(asio::make_work_guard(io)), alarm(io) {}

  /// One Asio timer stands for the earliest of ours. `mutex` is held.
  void arm() {
    if (timers.earliest() >= armed_for) return;
    armed_for = timers.earliest();
    alarm.expires_at(armed_for);
    alarm.async_wait([this](const boost::system::error_code& error) {
      if (!error) ring();
    });
  }

  void ring() {
    std::vector<Job> due;
    {
      const std::lock_guard lock(mutex);
      armed_for = kNever;
      for (;;) {
        std::pair<TimerId, Job> next = timers.pop_due(Clock::now());
        if (next.first == 0) break;
        due.push_back(std::move(next.second));
      }
      arm();
    }
    for (Job& job : due) job();
  }

  asio::io_context io;
  asio::executor_work_guard<asio::io_context::executor_type> work;
  std::mutex mutex;
  TimerQueue timers;
  asio::steady_timer alarm;
  TimePoint armed_for = kNever;
  std::atomic<bool> stopped{false};
  std::vector<std::thread> threads;
};

ThreadExecutor::ThreadExecutor(std::size_t threads)
    : impl_(std::make_unique<Impl>(static_cast<int>(std::max<std::size_t>(threads, 1)))) {
  for (std::size_t i = 0; i < std::max<std::size_t>(threads, 1); ++i) {
    impl_->threads.emplace_back([this] {
      const detail::CurrentExecutor current(*this);
      impl_->io.run();
    });
  }
}

ThreadExecutor::~ThreadExecutor() {
  stop();
  const std::lock_guard lock(impl_->mutex);
  impl_->timers.clear();
}

void ThreadExecutor::post(Job job) {
  if (impl_->stopped.load(std::memory_order_relaxed)) return;
  // defer: from one of our threads the job stays on it, unless another thread is free when the present job ends. A
  // ping-pong then needs no wake-up between threads.
  asio::defer(impl_->io, std::move(job));
}

TimerId ThreadExecutor::post_at(TimePoint when, Job job) {
  if (when == kNever || impl_->stopped.load(std::memory_order_relaxed)) return 0;
  const std::lock_guard lock(impl_->mutex);
  const TimerId id = impl_->timers.add(when, std::move(job));
  impl_->arm();
  return id;
}

void ThreadExecutor::cancel_timer(TimerId id) {
  Job cancelled;  // destroyed without the lock
  const std::lock_guard lock(impl_->mutex);
  cancelled = impl_->timers.cancel(id);
}

bool ThreadExecutor::wait(Latch& latch) {
  while (!latch.wait_until(Clock::now() + std::chrono::milliseconds(50))) {
    if (impl_->stopped) return latch.is_open();
  }
  return true;
}

void ThreadExecutor::stop() {
  if (impl_->stopped.exchange(true)) return;
  impl_->io.stop();
  for (std::thread& thread : impl_->threads) thread.join();
}

asio::io_context& ThreadExecutor::io_context() {
  return impl_->io;
}

}  // namespace helios::runtime
