#include "model/byte_trie.hpp"

namespace helios::model {

void ByteTrie::add(std::string_view text, std::int32_t id) {
  std::int32_t node = -1;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    std::int32_t next = child(node, byte);
    if (next < 0) {
      next = static_cast<std::int32_t>(nodes_.size());
      std::int32_t& first = node < 0 ? root_[byte] : nodes_[static_cast<std::size_t>(node)].child;
      const std::int32_t sibling = first;  // none, of a first byte
      first = next;
      nodes_.push_back({byte, -1, -1, sibling});
    }
    node = next;
  }
  nodes_[static_cast<std::size_t>(node)].id = id;
}

}  // namespace helios::model
