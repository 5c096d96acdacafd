#pragma once
// The base of all actors.

#include <memory>
#include <type_traits>
#include <utility>

#include "runtime/actor_cell.hpp"
#include "runtime/address.hpp"

namespace helios::runtime {

/// class Derived final : public Actor<Derived, MsgA, MsgB> with `Task<> on(MsgA)` and `Task<> on(MsgB)`.
/// Handlers run one at a time on the actor's strand, also across their co_awaits: the next message waits
/// until the present handler is done, and members need no lock. Longer work goes to scope().spawn(), which
/// shares the strand. Optional `Task<> on_stop()` runs as the last handler. Constructed and restarted by
/// ActorSystem only; the accessors below work in the constructor too. The constructor of the first
/// incarnation runs on the spawning thread.
template <class Derived, class... Msgs>
class Actor : public detail::ActorBase {
 public:
  using FullAddress = Address<Msgs...>;

 protected:
  Actor() : cell_(detail::ActorCell::under_construction()) {}

  Strand& strand() noexcept { return cell_.strand(); }
  /// Work that may outlive a handler. Asked to stop with the actor; emptied before on a restart.
  AsyncScope& scope() noexcept { return cell_.scope(); }
  Executor& executor() noexcept { return cell_.strand().root(); }
  TimePoint now() noexcept { return cell_.strand().now(); }
  FullAddress self() noexcept { return FullAddress(cell_.mailbox()); }
  const std::string& name() const noexcept { return cell_.options().name; }
  Tracer* tracer() const noexcept { return cell_.tracer(); }

  Task<> on_stop() { co_return; }

 private:
  Task<> dispatch(detail::Envelope& envelope) final {
    Task<> task;
    (void)((envelope.type == &detail::kTypeTag<Msgs> && (task = deliver<Msgs>(envelope), true)) || ...);
    return task;
  }
  template <class M>
  Task<> deliver(detail::Envelope& envelope) {
    return static_cast<Derived*>(this)->on(
        std::move(static_cast<detail::TypedEnvelope<M>&>(envelope).message));
  }
  Task<> stop_hook() final { return static_cast<Derived*>(this)->on_stop(); }

  detail::ActorCell& cell_;
};

}  // namespace helios::runtime
