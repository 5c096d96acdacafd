#pragma once
// One producer token per sender and mailbox: what keeps messages of one sender in order.

#include <cstddef>
#include <memory>
#include <unordered_map>

namespace helios::runtime {

class Mailbox;

namespace detail {

/// Belongs to one strand, or to one plain thread; used by what runs there, so it needs no lock.
class SenderTable {
 public:
  /// The token of this sender for `mailbox`, or null when it has none yet.
  void* find(const Mailbox* mailbox) noexcept;
  /// Keeps `mailbox` alive as long as the token, which refers to its queue.
  void* add(std::shared_ptr<Mailbox> mailbox, std::shared_ptr<void> token);

 private:
  struct Entry {
    std::shared_ptr<Mailbox> mailbox;
    std::shared_ptr<void> token;  // after mailbox: destroyed before it
  };
  std::unordered_map<const Mailbox*, Entry> entries_;
  const Mailbox* last_ = nullptr;
  void* last_token_ = nullptr;
  std::size_t purge_at_ = 32;  // entries; closed mailboxes leave when there are more
};

/// Of the strand that runs on this thread, else of the thread.
SenderTable& current_sender() noexcept;

}  // namespace detail
}  // namespace helios::runtime
