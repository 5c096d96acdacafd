#include "runtime/mailbox.hpp"

#include <concurrentqueue/concurrentqueue.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <mutex>
#include <utility>

#include "runtime/one_shot.hpp"
#include "runtime/sender_table.hpp"

namespace helios::runtime {

namespace {

using Queue = moodycamel::ConcurrentQueue<detail::Envelope*>;
constexpr std::uint64_t kParked = std::uint64_t{1} << 63;

}  // namespace

struct Mailbox::Impl {
  using Waiter = OneShot<Result<void>>;

  Impl(Options o, std::function<void()> w)
      : options(std::move(o)),
        wake(std::move(w)),
        queue(64),
        credit(static_cast<std::int64_t>(options.capacity)) {}

  ~Impl() { drain(); }

  bool acquire(bool urgent) {
    const std::int64_t floor = urgent ? -static_cast<std::int64_t>(options.reserved) : 0;
    std::int64_t left = credit.load();
    while (left > floor) {
      if (credit.compare_exchange_weak(left, left - 1)) return true;
    }
    return false;
  }

  /// Gives one place back, to those who wait first.
  void release() {
    credit.fetch_add(1);
    if (waiting.load() == 0) return;  // ordered after the line above: a waiter that missed it is seen here
    const std::lock_guard lock(mutex);
    while (!waiters.empty() && acquire(false)) {
      const std::shared_ptr<Waiter> next = std::move(waiters.front());
      waiters.pop_front();
      if (!next->set(Result<void>())) credit.fetch_add(1);  // it gave up (deadline)
    }
  }

  /// The caller has a credit for it.
  bool enqueue(Mailbox& self, std::unique_ptr<detail::Envelope>& envelope) {
    detail::SenderTable& sender = detail::current_sender();
    void* token = sender.find(&self);
    if (token == nullptr) {
      token = sender.add(self.shared_from_this(), std::make_shared<moodycamel::ProducerToken>(queue));
    }
    if (!queue.enqueue(*static_cast<moodycamel::ProducerToken*>(token), envelope.get())) return false;
    envelope.release();
    const std::uint64_t before = pending.fetch_add(1);
    if ((before & kParked) != 0 && (pending.fetch_and(~kParked) & kParked) != 0) wake();
    if (closed.load())
      drain();  // closed meanwhile: nobody else would answer what came in after close's drain
    return true;
  }

  void drain() {
    detail::Envelope* envelope = nullptr;
    while (queue.try_dequeue(envelope)) delete envelope;
  }

  const Options options;
  const std::function<void()> wake;
  Queue queue;
  alignas(64) std::atomic<std::int64_t> credit;       // below 0: urgent messages in reserved places
  alignas(64) std::atomic<std::uint64_t> pending{0};  // messages inside; kParked: the receiver waits for wake
  alignas(64) std::atomic<std::int64_t> waiting{0};   // senders in push, woken ones included
  std::atomic<bool> closed{false};
  std::mutex mutex;
  std::deque<std::shared_ptr<Waiter>> waiters;  // one per waiting sender
};

Mailbox::Mailbox(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Mailbox::~Mailbox() = default;

std::shared_ptr<Mailbox> Mailbox::create(Options options, std::function<void()> wake) {
  options.capacity = std::max<std::size_t>(options.capacity, 1);
  return std::shared_ptr<Mailbox>(new Mailbox(std::make_unique<Impl>(std::move(options), std::move(wake))));
}

Mailbox::Push Mailbox::try_push(std::unique_ptr<detail::Envelope>& envelope, bool urgent) {
  if (impl_->closed.load(std::memory_order_acquire)) return Push::closed;
  if (!urgent && impl_->waiting.load(std::memory_order_acquire) != 0) return Push::full;  // no overtaking
  if (!impl_->acquire(urgent)) return Push::full;
  if (impl_->enqueue(*this, envelope)) return Push::done;
  impl_->release();
  return Push::full;
}

Task<Result<void>> Mailbox::push(std::unique_ptr<detail::Envelope> envelope, TimePoint deadline) {
  /// Leaves the line however the wait ends; a place that was granted and not used goes to the next.
  struct Place {
    std::shared_ptr<Mailbox> mailbox;
    std::shared_ptr<Impl::Waiter> waiter = Impl::Waiter::create();
    bool granted = false;
    explicit Place(std::shared_ptr<Mailbox> m) : mailbox(std::move(m)) {
      mailbox->impl_->waiting.fetch_add(1);
    }
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;
    ~Place() {
      Impl& impl = *mailbox->impl_;
      {
        const std::lock_guard lock(impl.mutex);
        std::erase(impl.waiters, waiter);
      }
      const std::optional<Result<void>> unseen = waiter->try_take();
      impl.waiting.fetch_sub(1);
      if (granted || (unseen && *unseen)) impl.release();
    }
  };
  Place place(shared_from_this());
  Impl& impl = *impl_;
  {
    const std::lock_guard lock(impl.mutex);
    if (impl.closed.load()) co_return closed_error();
    if (impl.waiters.empty() && impl.acquire(false)) {
      place.granted = true;
    } else {
      impl.waiters.push_back(place.waiter);
    }
  }
  if (!place.granted) {
    if (Result<void> woken = co_await wait_until<void>(place.waiter, deadline); !woken) co_return woken;
    place.granted = true;
  }
  if (impl.closed.load()) co_return closed_error();
  if (!impl.enqueue(*this, envelope)) co_return full_error();
  place.granted = false;
  co_return Result<void>();
}

const Mailbox::Options& Mailbox::options() const noexcept {
  return impl_->options;
}
std::size_t Mailbox::depth() const noexcept {
  return static_cast<std::size_t>(impl_->pending.load(std::memory_order_relaxed) & ~kParked);
}
bool Mailbox::closed() const noexcept {
  return impl_->closed.load(std::memory_order_acquire);
}

Error Mailbox::full_error() const {
  return fail(Errc::busy, "the mailbox of " + impl_->options.name + " is full (" +
                              std::to_string(impl_->options.capacity) + " messages): retry later");
}
Error Mailbox::closed_error() const {
  return fail(Errc::dropped, "actor " + impl_->options.name + " has stopped");
}

std::unique_ptr<detail::Envelope> Mailbox::try_pop() {
  if ((impl_->pending.load(std::memory_order_acquire) & ~kParked) == 0) return nullptr;
  detail::Envelope* envelope = nullptr;
  if (!impl_->queue.try_dequeue(envelope)) return nullptr;
  impl_->pending.fetch_sub(1);
  impl_->release();
  return std::unique_ptr<detail::Envelope>(envelope);
}

bool Mailbox::try_park() {
  std::uint64_t expected = 0;
  return impl_->pending.compare_exchange_strong(expected, kParked) || expected == kParked;
}

void Mailbox::close() {
  impl_->closed.store(true);
  {
    const std::lock_guard lock(impl_->mutex);
    for (const auto& waiter : impl_->waiters) waiter->set(closed_error());
    impl_->waiters.clear();
  }
  impl_->drain();
}

}  // namespace helios::runtime
