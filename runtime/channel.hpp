#pragma once
// A bounded queue between coroutines on any strands or threads.

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "runtime/one_shot.hpp"

namespace helios::runtime {

/// Many producers, one consumer at a time. Bounded by the sum of `size` over the items inside; share it by
/// shared_ptr, or own it where both sides end first. Waiters resume on their own executors.
template <class T>
class Channel {
 public:
  using Size = std::function<std::size_t(const T&)>;

  /// `capacity` in units of `size`; without `size` every item counts 1.
  explicit Channel(std::size_t capacity, Size size = {}) : capacity_(capacity), size_(std::move(size)) {}
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  /// Never waits; `item` is moved from only on success. Errors: busy (no room, or others wait for room),
  /// too_long (never fits), dropped (closed).
  Result<void> try_push(T& item) { return push_now(item, false); }
  Result<void> try_push(T&& item) { return push_now(item, false); }

  /// Waits for room, in the order of arrival. Errors: too_long, dropped, deadline_exceeded, cancelled.
  Task<Result<void>> push(T item, TimePoint deadline = kNever, CancelToken cancel = {}) {
    bool first = false;  // at the head of the line once woken
    std::shared_ptr<Waiter> waiter;
    const Leave leave{this, &waiter};
    for (;;) {
      {
        const std::lock_guard lock(mutex_);
        Result<void> pushed = push_locked(item, first);
        if (pushed || pushed.error().code != Errc::busy) co_return pushed;
        waiter = Waiter::create();
        if (first) {
          waiting_.push_front(waiter);
        } else {
          waiting_.push_back(waiter);
        }
      }
      if (Result<void> woken = co_await wait_until<void>(waiter, deadline, cancel); !woken) co_return woken;
      first = true;
    }
  }

  /// The next item; std::nullopt when the channel is closed and empty, or at the deadline.
  Task<std::optional<T>> pop(TimePoint deadline = kNever, CancelToken cancel = {}) {
    for (;;) {
      std::shared_ptr<Waiter> waiter;
      {
        const std::lock_guard lock(mutex_);
        if (std::optional<T> item = pop_locked()) co_return item;
        if (closed_) co_return std::nullopt;
        waiter = consumer_ = Waiter::create();
      }
      if (Result<void> woken = co_await wait_until<void>(waiter, deadline, cancel); !woken) {
        co_return try_pop();
      }
    }
  }
  std::optional<T> try_pop() {
    const std::lock_guard lock(mutex_);
    return pop_locked();
  }

  /// Pushes are refused from now on, waiting ones too; the consumer gets what is inside, then std::nullopt.
  void close() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    for (const auto& waiter : waiting_) waiter->set(Result<void>());
    waiting_.clear();
    wake_consumer();
  }

  bool closed() const {
    const std::lock_guard lock(mutex_);
    return closed_;
  }
  /// In units of `size`.
  std::size_t used() const {
    const std::lock_guard lock(mutex_);
    return used_;
  }
  std::size_t count() const {
    const std::lock_guard lock(mutex_);
    return items_.size();
  }
  std::size_t capacity() const noexcept { return capacity_; }

 private:
  using Waiter = OneShot<Result<void>>;

  /// A producer that gives up its place, or that was woken for it and does not take it, hands it on.
  struct Leave {
    Channel* channel;
    std::shared_ptr<Waiter>* waiter;
    ~Leave() {
      if (!*waiter) return;
      const std::lock_guard lock(channel->mutex_);
      std::erase(channel->waiting_, *waiter);
      channel->wake_producer();
    }
  };

  Result<void> push_now(T& item, bool first) {
    const std::lock_guard lock(mutex_);
    return push_locked(item, first);
  }
  Result<void> push_locked(T& item, bool first) {
    if (closed_) return fail(Errc::dropped, "the channel is closed");
    const std::size_t units = size_ ? size_(item) : 1;
    if (units > capacity_) return fail(Errc::too_long, "the item is larger than the channel");
    if (units > capacity_ - used_ || (!first && !waiting_.empty()))
      return fail(Errc::busy, "the channel is full");
    used_ += units;
    items_.emplace_back(std::move(item), units);
    wake_consumer();
    return {};
  }
  std::optional<T> pop_locked() {
    if (items_.empty()) return std::nullopt;
    std::optional<T> item(std::move(items_.front().first));
    used_ -= items_.front().second;
    items_.pop_front();
    wake_producer();
    return item;
  }
  void wake_consumer() {
    if (consumer_) std::exchange(consumer_, nullptr)->set(Result<void>());
  }
  void wake_producer() {
    // A waiter that has its answer already (deadline, cancel) does not count.
    while (!waiting_.empty() && used_ < capacity_) {
      const std::shared_ptr<Waiter> waiter = std::move(waiting_.front());
      waiting_.pop_front();
      if (waiter->set(Result<void>())) return;
    }
  }

  const std::size_t capacity_;
  const Size size_;
  mutable std::mutex mutex_;
  std::deque<std::pair<T, std::size_t>> items_;
  std::size_t used_ = 0;
  bool closed_ = false;
  std::deque<std::shared_ptr<Waiter>> waiting_;  // producers; bounded by the number of producers
  std::shared_ptr<Waiter> consumer_;
};

}  // namespace helios::runtime
