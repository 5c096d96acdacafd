#pragma once
// Where to send: a copyable handle that takes exactly the message types it names.

#include <algorithm>
#include <memory>
#include <type_traits>
#include <utility>

#include "runtime/mailbox.hpp"
#include "runtime/reply.hpp"

namespace helios::runtime {

template <class M, class... Msgs>
concept OneOf = (std::is_same_v<M, Msgs> || ...);

/// Default-constructed it is empty and every message is dropped. An address of an actor converts to one of
/// fewer message types. It keeps the mailbox, not the actor: after the actor stopped, messages are refused as
/// dropped.
template <class... Msgs>
class Address {
 public:
  Address() = default;
  explicit Address(std::shared_ptr<Mailbox> mailbox) : mailbox_(std::move(mailbox)) {}
  template <class... More>
    requires(!std::is_same_v<Address<More...>, Address> && (OneOf<Msgs, More...> && ...))
  Address(const Address<More...>& other)  // NOLINT(google-explicit-constructor): narrowing is safe
      : mailbox_(other.mailbox()) {}

  explicit operator bool() const noexcept { return mailbox_ != nullptr; }
  const std::shared_ptr<Mailbox>& mailbox() const noexcept { return mailbox_; }
  friend bool operator==(const Address&, const Address&) = default;

  /// Never waits. Errors: busy (full), dropped (stopped).
  template <OneOf<Msgs...> M>
  Result<void> tell(M message) const {
    return push(std::move(message), false);
  }
  /// As tell, with the reserved places when the mailbox is full: for cancel, stop and terminal messages.
  template <OneOf<Msgs...> M>
  Result<void> tell_urgent(M message) const {
    return push(std::move(message), true);
  }
  /// Waits for room. Errors: dropped, deadline_exceeded.
  template <OneOf<Msgs...> M>
  Task<Result<void>> send(M message, TimePoint deadline = kNever) const {
    return send_to(mailbox_, std::move(message), deadline);
  }

  /// Sends a message that has a member `Reply<T> reply` and waits for the one answer, on the caller's
  /// executor. Errors: the receiver's; dropped; deadline_exceeded; busy (full, where the actor's policy is to
  /// refuse).
  template <OneOf<Msgs...> M>
  auto ask(M message, TimePoint deadline) const -> Task<Result<typename decltype(M::reply)::value_type>> {
    return ask_until(mailbox_, std::move(message), deadline, Duration::max());
  }
  template <OneOf<Msgs...> M>
  auto ask(M message, Duration timeout) const -> Task<Result<typename decltype(M::reply)::value_type>> {
    return ask_until(mailbox_, std::move(message), kNever, timeout);
  }

 private:
  static Error empty_error() { return fail(Errc::dropped, "the address is empty"); }

  template <class M>
  Result<void> push(M message, bool urgent) const {
    if (!mailbox_) return empty_error();
    std::unique_ptr<detail::Envelope> envelope =
        std::make_unique<detail::TypedEnvelope<M>>(std::move(message));
    switch (mailbox_->try_push(envelope, urgent)) {
      case Mailbox::Push::done:
        return {};
      case Mailbox::Push::full:
        return mailbox_->full_error();
      case Mailbox::Push::closed:
        break;
    }
    return mailbox_->closed_error();
  }

  template <class M>
  static Task<Result<void>> send_to(std::shared_ptr<Mailbox> mailbox, M message, TimePoint deadline) {
    if (!mailbox) co_return empty_error();
    std::unique_ptr<detail::Envelope> envelope =
        std::make_unique<detail::TypedEnvelope<M>>(std::move(message));
    switch (mailbox->try_push(envelope, false)) {
      case Mailbox::Push::done:
        co_return Result<void>();
      case Mailbox::Push::closed:
        co_return mailbox->closed_error();
      case Mailbox::Push::full:
        break;
    }
    co_return co_await mailbox->push(std::move(envelope), deadline);
  }

  template <class M>
  static auto ask_until(std::shared_ptr<Mailbox> mailbox, M message, TimePoint deadline, Duration timeout)
      -> Task<Result<typename decltype(M::reply)::value_type>> {
    using T = typename decltype(M::reply)::value_type;
    if (!mailbox) co_return empty_error();
    Executor& root = detail::require_executor("ask").root();
    deadline = std::min(deadline, saturating_add(root.now(), timeout));
    auto state = OneShot<Result<T>>::create();
    message.reply = Reply<T>(state);
    std::unique_ptr<detail::Envelope> envelope =
        std::make_unique<detail::TypedEnvelope<M>>(std::move(message));
    switch (mailbox->try_push(envelope, false)) {
      case Mailbox::Push::done:
        break;
      case Mailbox::Push::closed:
        co_return mailbox->closed_error();
      case Mailbox::Push::full:
        if (mailbox->options().when_full == WhenFull::refuse) co_return mailbox->full_error();
        if (Result<void> sent = co_await mailbox->push(std::move(envelope), deadline); !sent) {
          co_return sent.error();
        }
        break;
    }
    detail::TimerGuard timer(root, deadline, [state] {
      state->set(fail(Errc::deadline_exceeded, "no answer before the deadline"));
    });
    co_return co_await state->wait();
  }

  std::shared_ptr<Mailbox> mailbox_;
};

}  // namespace helios::runtime
