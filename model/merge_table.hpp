#pragma once
// The merges of BPE: which two symbols become one, and which pair goes first.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <queue>
#include <vector>

namespace helios::model {

/// Symbols are numbers >= 0; the table does not care what they stand for. Filled once, then any thread may
/// merge.
class MergeTable {
 public:
  /// Makes room for `count` merges and forgets all others. Needs count < 2^30.
  void reset(std::size_t count);
  /// The pair becomes `result`; a lower rank goes first. False: the pair is there already. At most `count`
  /// times.
  bool add(std::int32_t left, std::int32_t right, std::int32_t rank, std::int32_t result);

  /// Buffers that are reused from piece to piece.
  class Scratch;
  /// Replaces the best pair by its result, the leftmost of equals first, until no pair is left. n log n at
  /// worst.
  void merge(std::vector<std::int32_t>& symbols, Scratch& scratch) const;

 private:
  struct Merge {  // one slot of an open-addressing table
    std::uint64_t pair = kNoPair;
    std::int32_t rank = 0;
    std::int32_t result = 0;
  };
  static constexpr std::uint64_t kNoPair = ~std::uint64_t{0};

  const Merge* find(std::int32_t left, std::int32_t right) const noexcept;
  void merge_short(std::vector<std::int32_t>& symbols) const;
  void merge_long(std::vector<std::int32_t>& symbols, Scratch& scratch) const;

  std::vector<Merge> slots_ = std::vector<Merge>(1);  // a power of two
};

class MergeTable::Scratch {
  friend class MergeTable;
  struct Node {  // a symbol of a long piece, linked to its living neighbours
    std::int32_t id;
    std::int32_t previous;
    std::int32_t next;
  };
  struct Candidate {
    std::int32_t rank;
    std::int32_t left;   // node
    std::int32_t right;  // node
    std::uint64_t pair;  // stale when the nodes no longer hold these ids
    bool operator>(const Candidate& other) const {
      return rank != other.rank ? rank > other.rank : left > other.left;
    }
  };
  std::vector<Node> nodes;
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> candidates;
};

}  // namespace helios::model
