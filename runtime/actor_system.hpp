#pragma once
// Spawns actors and stops them in reverse order.

#include <cstddef>
#include <functional>
#include <memory>
#include <stdexcept>
#include <tuple>
#include <type_traits>
#include <utility>

#include "runtime/actor.hpp"

namespace helios::runtime {

/// What spawn returns: converts to an Address of any of the actor's messages. Copyable; does not keep the
/// actor.
template <class Derived>
class ActorRef {
 public:
  explicit ActorRef(std::shared_ptr<Mailbox> mailbox) : mailbox_(std::move(mailbox)) {}

  typename Derived::FullAddress address() const { return typename Derived::FullAddress(mailbox_); }
  template <class First, class... Rest>
  Address<First, Rest...> address() const {
    return address();
  }
  template <class... Msgs>
  operator Address<Msgs...>() const {  // NOLINT(google-explicit-constructor)
    return address();
  }
  std::size_t depth() const { return mailbox_->depth(); }
  /// No message is accepted any more.
  bool stopped() const { return mailbox_->closed(); }

 private:
  std::shared_ptr<Mailbox> mailbox_;
};

/// Thread-safe, but for stop and destruction, which belong to a plain thread (under simulation: outside a
/// step).
class ActorSystem {
 public:
  /// `executor`, `metrics` and `tracer` outlive it. Without `on_failure`, failures are written to stderr.
  explicit ActorSystem(Executor& executor, Registry* metrics = nullptr, Tracer* tracer = nullptr,
                       FailureHook on_failure = {});
  ~ActorSystem();  // stop()
  ActorSystem(const ActorSystem&) = delete;
  ActorSystem& operator=(const ActorSystem&) = delete;

  /// Builds Derived(args...) here and starts it; exceptions of its constructor come out. Under
  /// Policy::restart the arguments are kept and copied, so they must be copyable: else std::invalid_argument.
  /// After stop the actor is refused: its address drops everything.
  template <class Derived, class... Args>
  ActorRef<Derived> spawn(ActorOptions options, Args&&... args) {
    static_assert(std::is_constructible_v<Derived, std::decay_t<Args>...>,
                  "no constructor for these arguments");
    detail::ActorCell::Factory factory;
    if constexpr ((std::is_copy_constructible_v<std::decay_t<Args>> && ...) &&
                  std::is_constructible_v<Derived, const std::decay_t<Args>&...>) {
      factory = [kept = std::make_tuple(std::decay_t<Args>(std::forward<Args>(args))...)] {
        return std::apply([](const auto&... each) { return build<Derived>(each...); }, kept);
      };
    } else {
      if (options.supervision.policy == Supervision::Policy::restart) {
        throw std::invalid_argument("actor " + options.name +
                                    ": restart needs copyable constructor arguments");
      }
      auto kept = std::make_shared<std::tuple<std::decay_t<Args>...>>(std::forward<Args>(args)...);
      factory = [kept] {
        return std::apply([](auto&... each) { return build<Derived>(std::move(each)...); }, *kept);
      };
    }
    return ActorRef<Derived>(start(std::move(options), std::move(factory)));
  }

  /// Stops the actors, last spawned first, each joined before the next; blocks. Not from a job of the
  /// executor. Each is given its stop_grace. Calling it again is a no-op.
  void stop();

  Executor& executor() noexcept;
  Registry* metrics() noexcept;
  Tracer* tracer() noexcept;
  /// An actor with Policy::escalate failed, and everything is being stopped.
  bool escalated() const noexcept;
  /// Called once on escalation, from a job; set before the first spawn.
  void on_escalation(std::function<void()> hook);

 private:
  struct Impl;
  template <class Derived, class... Args>
  static std::unique_ptr<detail::ActorBase> build(Args&&... args) {
    return std::make_unique<Derived>(std::forward<Args>(args)...);
  }
  std::shared_ptr<Mailbox> start(ActorOptions options, detail::ActorCell::Factory factory);
  std::shared_ptr<Impl> impl_;
};

}  // namespace helios::runtime
