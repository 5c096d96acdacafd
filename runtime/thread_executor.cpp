#include "runtime/thread_executor.hpp"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <vector>

namespace helios::runtime {

namespace asio = boost::asio;

struct ThreadExecutor::Impl {
  asio::io_context io;
  asio::executor_work_guard<asio::io_context::executor_type> work{io.get_executor()};
  std::vector<std::thread> threads;
  std::mutex mutex;  // guards timers and every operation on one
  std::unordered_map<TimerId, std::unique_ptr<asio::steady_timer>> timers;
  TimerId next_timer = 1;

  bool forget(TimerId id) {
    const std::lock_guard lock(mutex);
    return timers.erase(id) != 0;
  }
};

ThreadExecutor::ThreadExecutor(int threads) : impl_(std::make_unique<Impl>()) {
  for (int i = 0; i < threads; ++i) {
    impl_->threads.emplace_back([io = &impl_->io] { io->run(); });
  }
}

ThreadExecutor::~ThreadExecutor() {
  stop();
  const std::lock_guard lock(impl_->mutex);
  impl_->timers.clear();
}

void ThreadExecutor::stop() {
  impl_->io.stop();
  for (std::thread& thread : impl_->threads) {
    if (thread.joinable()) thread.join();
  }
}

void ThreadExecutor::post(Job job) {
  asio::post(impl_->io, [job = std::move(job)]() mutable { job(); });
}

TimerId ThreadExecutor::post_at(TimePoint when, Job job) {
  const std::lock_guard lock(impl_->mutex);
  const TimerId id = impl_->next_timer++;
  auto timer = std::make_unique<asio::steady_timer>(impl_->io, when);
  timer->async_wait([impl = impl_.get(), id, job = std::move(job)](const boost::system::error_code& code) mutable {
    if (impl->forget(id) && !code) job();
  });
  impl_->timers.emplace(id, std::move(timer));
  return id;
}

void ThreadExecutor::cancel_timer(TimerId id) { impl_->forget(id); }

bool ThreadExecutor::drive(const std::function<bool()>& done, Duration limit) {
  const TimePoint end = Clock::now() + limit;
  while (!done()) {
    if (Clock::now() >= end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

void* ThreadExecutor::io_context() noexcept { return &impl_->io; }

}  // namespace helios::runtime
