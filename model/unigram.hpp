#pragma once
// Unigram language model: the cut of a text whose tokens' scores add up to the most.

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "model/byte_trie.hpp"

namespace helios::model {

/// Source: Kudo 2018, "Subword Regularization", arXiv:1804.10959. Ties and the price of unknown text follow
/// the `tokenizers` library, so that ids agree with it.
class Unigram {
 public:
  /// A token with its score (a log probability; finite).
  void add(std::string_view spelling, std::int32_t id, double score);

  /// A part of the text: its token, or -1 for code points that no token covers (neighbours of this kind come
  /// as one part).
  struct Part {
    std::int32_t id = -1;
    std::size_t begin = 0;  // byte offsets
    std::size_t end = 0;
  };
  /// The best cut of `text`. Cost: bytes x longest token.
  std::vector<Part> cut(std::string_view text) const;

 private:
  ByteTrie trie_;
  std::vector<double> scores_;  // by id
  double lowest_ = 0;
};

}  // namespace helios::model
