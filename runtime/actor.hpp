#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <variant>

#include "runtime/address.hpp"
#include "runtime/async_scope.hpp"
#include "runtime/metrics.hpp"
#include "runtime/strand.hpp"
#include "runtime/trace.hpp"

namespace helios::runtime {

/// What an actor finds around it; owned by its cell.
struct ActorContext {
  std::shared_ptr<Strand> strand;
  std::shared_ptr<AsyncScope> scope;
  std::shared_ptr<detail::CellBase> cell;  // cleared when the actor stops, so no cycle outlives it
  Tracer* tracer = nullptr;
  Registry* metrics = nullptr;
  std::string name;
};

/// Base of every actor: `class Router : public Actor<Router, Submit, Cancel>` with `Task<> on(Submit)`.
/// Handlers run one at a time on the strand, so members need no lock; a handler that suspends keeps the next
/// message waiting, so long work goes to scope().spawn(...). Constructed off the strand, before any message.
template <class Derived, class... Msgs>
class Actor {
 public:
  using Envelope = std::variant<std::monostate, Msgs...>;

  /// First job on the strand, before any message.
  Task<> on_start() { co_return; }
  /// After the last message: wait here for what must end in order. Bounded by ActorOptions::stop_deadline.
  Task<> on_stop() { co_return; }
  /// By the cell, before on_start(). A child of scope() that throws fails the actor as a handler would.
  void attach(std::shared_ptr<ActorContext> context) { context_ = std::move(context); }

 protected:
  const std::shared_ptr<Strand>& strand() const noexcept { return context_->strand; }
  AsyncScope& scope() const noexcept { return *context_->scope; }
  TimePoint now() const { return context_->strand->now(); }
  Tracer* tracer() const noexcept { return context_->tracer; }
  Registry* metrics() const noexcept { return context_->metrics; }
  const std::string& name() const noexcept { return context_->name; }
  /// Own address, for peers and children. Not from the constructor.
  template <class... Some>
  Address<Some...> self() const;

 private:
  std::shared_ptr<ActorContext> context_;
};

/// "helios::actors::Submit" -> "Submit", at compile time.
template <class T>
constexpr std::string_view type_name() {
  std::string_view text = __PRETTY_FUNCTION__;
  const std::size_t start = text.find("T = ") + 4;
  text = text.substr(start, text.find_first_of("];", start) - start);
  const std::size_t colon = text.rfind(':');
  return colon == std::string_view::npos ? text : text.substr(colon + 1);
}

}  // namespace helios::runtime
