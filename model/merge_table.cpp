#include "model/merge_table.hpp"

#include <array>
#include <bit>

namespace helios::model {
namespace {

// Longer pieces (a line of one letter, a text without pieces) go through a heap: n log n instead of n².
constexpr std::size_t kShortPiece = 24;

std::uint64_t pair_of(std::int32_t left, std::int32_t right) {
  return static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32 |
         static_cast<std::uint32_t>(right);
}

std::size_t slot_of(std::uint64_t pair) {
  return static_cast<std::size_t>((pair * 0x9E3779B97F4A7C15) >> 20);
}

}  // namespace

void MergeTable::reset(std::size_t count) {
  slots_.assign(std::bit_ceil(count * 2 + 1), {});
}

bool MergeTable::add(std::int32_t left, std::int32_t right, std::int32_t rank, std::int32_t result) {
  const std::uint64_t pair = pair_of(left, right);
  const std::size_t mask = slots_.size() - 1;
  std::size_t slot = slot_of(pair) & mask;
  while (slots_[slot].pair != kNoPair && slots_[slot].pair != pair) slot = (slot + 1) & mask;
  if (slots_[slot].pair == pair) return false;
  slots_[slot] = {pair, rank, result};
  return true;
}

const MergeTable::Merge* MergeTable::find(std::int32_t left, std::int32_t right) const noexcept {
  const std::uint64_t pair = pair_of(left, right);
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t slot = slot_of(pair) & mask;; slot = (slot + 1) & mask) {  // half of the slots are free
    const Merge& merge = slots_[slot];
    if (merge.pair == pair) return &merge;
    if (merge.pair == kNoPair) return nullptr;
  }
}

void MergeTable::merge(std::vector<std::int32_t>& symbols, Scratch& scratch) const {
  if (symbols.size() <= kShortPiece) {
    merge_short(symbols);
  } else {
    merge_long(symbols, scratch);
  }
}

// Applies the best merge, leftmost first, until none is left: the definition, fast for a word.
void MergeTable::merge_short(std::vector<std::int32_t>& symbols) const {
  std::array<const Merge*, kShortPiece> merges{};  // of symbols i and i + 1
  std::size_t count = symbols.size();
  for (std::size_t i = 0; i + 1 < count; ++i) merges[i] = find(symbols[i], symbols[i + 1]);
  while (count > 1) {
    std::size_t best = count;
    for (std::size_t i = 0; i + 1 < count; ++i) {
      if (merges[i] != nullptr && (best == count || merges[i]->rank < merges[best]->rank)) best = i;
    }
    if (best == count) break;
    symbols[best] = merges[best]->result;
    for (std::size_t i = best + 1; i + 1 < count; ++i) {
      symbols[i] = symbols[i + 1];
      merges[i] = merges[i + 1];
    }
    --count;
    if (best > 0) merges[best - 1] = find(symbols[best - 1], symbols[best]);
    merges[best] = best + 1 < count ? find(symbols[best], symbols[best + 1]) : nullptr;
  }
  symbols.resize(count);
}

// The same order through a heap of candidates over a linked list; stale candidates are skipped when they come
// up.
void MergeTable::merge_long(std::vector<std::int32_t>& symbols, Scratch& scratch) const {
  std::vector<Scratch::Node>& nodes = scratch.nodes;
  auto& candidates = scratch.candidates;  // empty between pieces
  const auto node = [&nodes](std::int32_t i) -> Scratch::Node& { return nodes[static_cast<std::size_t>(i)]; };
  const auto count = static_cast<std::int32_t>(symbols.size());
  nodes.clear();
  for (std::int32_t i = 0; i < count; ++i) {
    nodes.push_back({symbols[static_cast<std::size_t>(i)], i - 1, i + 1 < count ? i + 1 : -1});
  }
  const auto offer = [&](std::int32_t left, std::int32_t right) {
    if (left < 0 || right < 0) return;
    if (const Merge* merge = find(node(left).id, node(right).id)) {
      candidates.push({merge->rank, left, right, merge->pair});
    }
  };
  for (std::int32_t i = 0; i + 1 < count; ++i) offer(i, i + 1);
  while (!candidates.empty()) {
    const Scratch::Candidate best = candidates.top();
    candidates.pop();
    Scratch::Node& left = node(best.left);
    Scratch::Node& right = node(best.right);
    // A node that was merged away has id -1, so its pair can match nothing.
    if (left.next != best.right || pair_of(left.id, right.id) != best.pair) continue;
    left.id = find(left.id, right.id)->result;
    left.next = right.next;
    if (right.next >= 0) node(right.next).previous = best.left;
    right.id = -1;
    offer(left.previous, best.left);
    offer(best.left, left.next);
  }
  symbols.clear();
  for (std::int32_t i = 0; i >= 0; i = node(i).next) symbols.push_back(node(i).id);
}

}  // namespace helios::model
