#pragma once
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/result.hpp"
#include "runtime/task.hpp"
#include "runtime/waiter.hpp"

namespace helios::runtime {

/// A bounded queue of values between strands. The bound counts what `size_of` says (bytes, tokens); one value
/// always fits an empty channel. Any number of writers, one reader at a time. Any thread.
template <class T>
class Channel {
 public:
  using SizeOf = std::function<std::size_t(const T&)>;
  explicit Channel(std::size_t capacity, SizeOf size_of = [](const T&) { return std::size_t{1}; })
      : capacity_(capacity), size_of_(std::move(size_of)) {}
  ~Channel() { close(); }
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  /// Never waits; the value is moved from only on success. Errors: busy, dropped (closed).
  Result<void> try_push(T& value) {
    std::shared_ptr<Waiter> reader;
    {
      const std::lock_guard lock(mutex_);
      if (closed_) return fail(Errc::dropped, "the channel is closed");
      const std::size_t size = size_of_(value);
      if (!items_.empty() && used_ + size > capacity_) return fail(Errc::busy, "the channel is full");
      used_ += size;
      items_.emplace_back(std::move(value), size);
      reader = std::move(reader_);
    }
    if (reader) reader->wake();
    return {};
  }
  /// Waits for room. Errors: deadline_exceeded, dropped.
  Task<Result<void>> push(T value, TimePoint deadline = TimePoint::max()) {
    for (;;) {
      Result<void> pushed = try_push(value);
      if (pushed || pushed.error().code != Errc::busy) co_return pushed;
      if (Executor::current()->now() >= deadline) co_return fail(Errc::deadline_exceeded, "no room in the channel in time");
      Wait wait{.channel = *this, .for_room = true, .deadline = deadline};
      co_await wait;
    }
  }
  std::optional<T> try_pop() {
    std::optional<T> value;
    std::vector<std::shared_ptr<Waiter>> writers;
    {
      const std::lock_guard lock(mutex_);
      if (items_.empty()) return std::nullopt;
      value.emplace(std::move(items_.front().first));
      used_ -= items_.front().second;
      items_.pop_front();
      writers.swap(writers_);
    }
    for (const auto& writer : writers) writer->wake();
    return value;
  }
  /// The next value in order; nullopt when closed and empty, or at the deadline.
  Task<std::optional<T>> pop(TimePoint deadline = TimePoint::max()) {
    for (;;) {
      if (std::optional<T> value = try_pop()) co_return value;
      if (closed() || Executor::current()->now() >= deadline) co_return try_pop();
      Wait wait{.channel = *this, .for_room = false, .deadline = deadline};
      co_await wait;
    }
  }
  /// No more writes; what is there can still be read.
  void close() {
    std::vector<std::shared_ptr<Waiter>> woken;
    {
      const std::lock_guard lock(mutex_);
      closed_ = true;
      woken.swap(writers_);
      if (reader_) woken.push_back(std::move(reader_));
    }
    for (const auto& waiter : woken) waiter->wake();
  }
  bool closed() const {
    const std::lock_guard lock(mutex_);
    return closed_;
  }
  std::size_t used() const {
    const std::lock_guard lock(mutex_);
    return used_;
  }

 private:
  struct Wait {
    Channel& channel;
    bool for_room;
    TimePoint deadline;
    WaiterHandle waiter;
    bool await_ready() const noexcept { return false; }
    bool await_suspend(std::coroutine_handle<> handle) {
      auto armed = waiter.arm(handle);
      {
        const std::lock_guard lock(channel.mutex_);
        const bool ready = channel.closed_ || (for_room ? channel.items_.empty() || channel.used_ < channel.capacity_
                                                        : !channel.items_.empty());
        if (ready) {
          waiter.reset();
          return false;
        }
        if (for_room) {
          channel.writers_.push_back(armed);
        } else {
          channel.reader_ = armed;
        }
      }
      waiter.wake_at(deadline);
      return true;
    }
    void await_resume() noexcept { waiter.reset(); }
  };

  const std::size_t capacity_;
  const SizeOf size_of_;
  mutable std::mutex mutex_;
  std::deque<std::pair<T, std::size_t>> items_;
  std::size_t used_ = 0;
  bool closed_ = false;
  std::shared_ptr<Waiter> reader_;
  std::vector<std::shared_ptr<Waiter>> writers_;
};

}  // namespace helios::runtime
