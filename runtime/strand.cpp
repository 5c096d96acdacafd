#include "runtime/strand.hpp"

namespace helios::runtime {

void Strand::post(Job job) {
  {
    const std::lock_guard lock(mutex_);
    jobs_.push_back(std::move(job));
    if (scheduled_) return;
    scheduled_ = true;
  }
  base_.post([self = shared_from_this()] { self->run(); });
}

TimerId Strand::post_at(TimePoint when, Job job) {
  auto shared = std::make_shared<Job>(std::move(job));
  return base_.post_at(when, [self = shared_from_this(), shared] { self->post(std::move(*shared)); });
}

void Strand::run() {
  const Entered entered(shared_from_this());
  for (int i = 0; i < kBatch; ++i) {
    Job job;
    {
      const std::lock_guard lock(mutex_);
      if (jobs_.empty()) {
        scheduled_ = false;
        return;
      }
      job = std::move(jobs_.front());
      jobs_.pop_front();
    }
    job();
  }
  base_.post([self = shared_from_this()] { self->run(); });
}

}  // namespace helios::runtime
