#pragma once
// Cuts text into the pieces that BPE may not merge across.

#include <cstdint>
#include <optional>
#include <string_view>

#include "runtime/result.hpp"

namespace helios::model {

/// gpt2:   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
/// smollm: first every \p{N} on its own, then gpt2 within what is between them.
enum class PreTokenizer : std::uint8_t { gpt2, smollm };

/// By the name in tokenizer.ggml.pre. Errors: unsupported, naming it and those that are known.
Result<PreTokenizer> pretokenizer_by_name(std::string_view name);

/// One code point of UTF-8. An invalid byte is a code point of its own (valid = false, length = 1).
struct CodePoint {
  char32_t value = 0;
  std::uint32_t length = 0;  // bytes
  bool valid = true;
};
/// Needs a non-empty text. Strict: no surrogates, no over-long forms, nothing above U+10FFFF.
CodePoint decode_code_point(std::string_view text) noexcept;

/// Walks over the pieces of a text, in order, without allocating. Together they are the text.
/// Cost: linear; each byte is looked at a bounded number of times.
class PieceReader {
 public:
  PieceReader(PreTokenizer kind, std::string_view text) : kind_(kind), rest_(text) {}
  /// The next piece, or nullopt at the end.
  std::optional<std::string_view> next();

 private:
  PreTokenizer kind_;
  std::string_view rest_;
  std::string_view segment_;  // smollm: what is left before the next number
};

}  // namespace helios::model
