#pragma once
// The bounded queue in front of an actor: lock-free, first in first out per sender.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "runtime/clock.hpp"
#include "runtime/result.hpp"
#include "runtime/task.hpp"

namespace helios::runtime {

/// What ask does when the mailbox is full; tell always refuses and send always waits.
enum class WhenFull : unsigned char { refuse, wait };

namespace detail {

template <class M>
constexpr std::string_view type_name() {
  std::string_view name = __PRETTY_FUNCTION__;
  name.remove_prefix(name.find("M = ") + 4);
  name = name.substr(0, name.find_first_of("];"));
  if (const auto colon = name.rfind("::"); colon != name.npos) name.remove_prefix(colon + 2);
  return name;
}
template <class M>
inline constexpr char kTypeTag = 0;  // its address names the type

/// A message on its way.
struct Envelope {
  Envelope(const void* tag, std::string_view label) noexcept : type(tag), name(label) {}
  virtual ~Envelope() = default;
  Envelope(const Envelope&) = delete;
  Envelope& operator=(const Envelope&) = delete;
  const void* type;
  std::string_view name;
};
template <class M>
struct TypedEnvelope final : Envelope {
  explicit TypedEnvelope(M&& m) : Envelope(&kTypeTag<M>, type_name<M>()), message(std::move(m)) {}
  M message;
};

}  // namespace detail

/// Bounded by credit: `capacity` messages, and `reserved` more for urgent ones (cancel, stop, terminal).
/// Urgent messages do not overtake: order per sender holds for both. The sender is the strand that runs, else
/// the thread; each has one producer token, so order holds for a strand that changes threads.
class Mailbox : public std::enable_shared_from_this<Mailbox> {
 public:
  struct Options {
    std::string name;
    std::size_t capacity = 1024;
    std::size_t reserved = 256;
    WhenFull when_full = WhenFull::refuse;
  };
  enum class Push : unsigned char { done, full, closed };

  /// `wake` is called, on the sender's thread, when a message comes while the receiver is parked.
  static std::shared_ptr<Mailbox> create(Options options, std::function<void()> wake);
  ~Mailbox();
  Mailbox(const Mailbox&) = delete;
  Mailbox& operator=(const Mailbox&) = delete;

  // --- senders, any thread ---
  /// Takes `envelope` only when done. Not urgent: also full while others wait for room.
  Push try_push(std::unique_ptr<detail::Envelope>& envelope, bool urgent);
  /// Waits for room. Errors: dropped (closed), deadline_exceeded.
  Task<Result<void>> push(std::unique_ptr<detail::Envelope> envelope, TimePoint deadline);
  const Options& options() const noexcept;
  /// Messages inside, roughly.
  std::size_t depth() const noexcept;
  bool closed() const noexcept;
  Error full_error() const;
  Error closed_error() const;

  // --- the one receiver ---
  std::unique_ptr<detail::Envelope> try_pop();
  /// True: parked, `wake` comes with the next message. False: there is one.
  bool try_park();
  /// Refuses from now on and destroys what is inside: asks in it are answered with dropped.
  void close();

 private:
  struct Impl;
  explicit Mailbox(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace helios::runtime
