#include "runtime/strand.hpp"

#include <deque>
#include <mutex>
#include <utility>

#include "runtime/sender_table.hpp"

namespace helios::runtime {

class Strand::Impl final : public Executor, public std::enable_shared_from_this<Impl> {
 public:
  explicit Impl(Executor& root) : root_(root) {}

  void post(Job job) override {
    {
      const std::lock_guard lock(mutex_);
      if (closed_) return;  // `job` is destroyed by the caller's frame, without the lock
      queue_.push_back(std::move(job));
      if (scheduled_) return;
      scheduled_ = true;
    }
    schedule();
  }

  TimerId post_at(TimePoint when, Job job) override {
    return root_.post_at(when, [weak = weak_from_this(), inner = std::move(job)]() mutable {
      if (const std::shared_ptr<Impl> self = weak.lock()) self->post(std::move(inner));
    });
  }
  void cancel_timer(TimerId id) override { root_.cancel_timer(id); }
  TimePoint now() const override { return root_.now(); }
  Executor& root() override { return root_; }
  std::size_t turn_limit() const override { return root_.turn_limit(); }
  bool wait(Latch& latch) override { return root_.wait(latch); }

  void close() {
    std::deque<Job> dropped;
    const std::lock_guard lock(mutex_);
    closed_ = true;
    dropped.swap(queue_);
    // `dropped` is destroyed after the lock: destructors of jobs may post here.
  }

 private:
  void schedule() {
    root_.post([self = shared_from_this()] { self->run(); });
  }

  void run() {
    const detail::CurrentExecutor current(*this, &sender_);
    const std::size_t limit = root_.turn_limit();
    for (std::size_t done = 0; done < limit; ++done) {
      Job job;
      {
        const std::lock_guard lock(mutex_);
        if (queue_.empty()) {
          scheduled_ = false;
          return;
        }
        job = std::move(queue_.front());
        queue_.pop_front();
      }
      job();
    }
    schedule();
  }

  Executor& root_;
  std::mutex mutex_;
  std::deque<Job> queue_;   // bounded by waits and timers of the coroutines on this strand
  bool scheduled_ = false;  // run() is posted or running
  bool closed_ = false;
  detail::SenderTable sender_;
};

Strand::Strand(Executor& executor) : impl_(std::make_shared<Impl>(executor.root())) {}
Strand::~Strand() {
  impl_->close();
}
void Strand::post(Job job) {
  impl_->post(std::move(job));
}
TimerId Strand::post_at(TimePoint when, Job job) {
  return impl_->post_at(when, std::move(job));
}
void Strand::cancel_timer(TimerId id) {
  impl_->cancel_timer(id);
}
TimePoint Strand::now() const {
  return impl_->now();
}
Executor& Strand::root() {
  return impl_->root();
}
std::size_t Strand::turn_limit() const {
  return impl_->turn_limit();
}
bool Strand::wait(Latch& latch) {
  return impl_->wait(latch);
}
bool Strand::is_current() const noexcept {
  return current_executor() == impl_.get();
}

}  // namespace helios::runtime
