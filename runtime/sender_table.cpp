#include "runtime/sender_table.hpp"

#include <algorithm>
#include <utility>

#include "runtime/mailbox.hpp"

namespace helios::runtime::detail {

void* SenderTable::find(const Mailbox* mailbox) noexcept {
  if (mailbox == last_) return last_token_;
  const auto found = entries_.find(mailbox);
  if (found == entries_.end()) return nullptr;
  last_ = mailbox;
  last_token_ = found->second.token.get();
  return last_token_;
}

void* SenderTable::add(std::shared_ptr<Mailbox> mailbox, std::shared_ptr<void> token) {
  if (entries_.size() >= purge_at_) {
    last_ = nullptr;
    std::erase_if(entries_, [](const auto& item) { return item.second.mailbox->closed(); });
    purge_at_ = std::max<std::size_t>(32, entries_.size() * 2);
  }
  last_ = mailbox.get();
  last_token_ = token.get();
  entries_.insert_or_assign(last_, Entry{std::move(mailbox), std::move(token)});
  return last_token_;
}

}  // namespace helios::runtime::detail
