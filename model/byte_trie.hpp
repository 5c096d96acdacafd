#pragma once
// Strings and the ids they have, found at the start of a text.

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace helios::model {

/// A trie over bytes. Filled once, then any thread may look things up.
class ByteTrie {
 public:
  ByteTrie() { root_.fill(-1); }

  bool empty() const noexcept { return nodes_.empty(); }
  /// `text` must not be empty; a second id for the same text replaces the first.
  void add(std::string_view text, std::int32_t id);

  /// Calls `found(id, length)` for every stored string that `text` begins with, shortest first.
  template <class Found>
  void prefixes(std::string_view text, Found found) const {
    std::int32_t node = -1;
    for (std::size_t i = 0; i < text.size(); ++i) {
      node = child(node, static_cast<unsigned char>(text[i]));
      if (node < 0) return;
      const std::int32_t id = nodes_[static_cast<std::size_t>(node)].id;
      if (id >= 0) found(id, i + 1);
    }
  }

 private:
  struct Node {
    unsigned char byte = 0;
    std::int32_t id = -1;
    std::int32_t child = -1;
    std::int32_t sibling = -1;
  };
  std::int32_t child(std::int32_t node, unsigned char byte) const noexcept {
    if (node < 0) return root_[byte];
    std::int32_t at = nodes_[static_cast<std::size_t>(node)].child;
    while (at >= 0 && nodes_[static_cast<std::size_t>(at)].byte != byte) {
      at = nodes_[static_cast<std::size_t>(at)].sibling;
    }
    return at;
  }

  std::array<std::int32_t, 256> root_{};  // first bytes have a table: every position of a text asks for one
  std::vector<Node> nodes_;
};

}  // namespace helios::model
