#pragma once
// Order and mutual exclusion without blocking: jobs of one strand run one at a time, in the order posted.

#include <memory>

#include "runtime/executor.hpp"

namespace helios::runtime {

/// Destroying it drops jobs that did not start; the job that runs now on another thread ends by itself.
/// Coroutines that wait on a strand must be gone before it is (AsyncScope sees to that).
class Strand final : public Executor {
 public:
  explicit Strand(Executor& executor);
  ~Strand() override;
  Strand(const Strand&) = delete;
  Strand& operator=(const Strand&) = delete;

  void post(Job job) override;
  TimerId post_at(TimePoint when, Job job) override;
  void cancel_timer(TimerId id) override;
  TimePoint now() const override;
  Executor& root() override;
  std::size_t turn_limit() const override;
  bool wait(Latch& latch) override;

  /// The calling code runs on this strand now.
  bool is_current() const noexcept;

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace helios::runtime
