#pragma once
// Cuts text into the pieces that BPE may not merge across.

#include <cstdint>
#include <optional>
#include <string_view>

#include "runtime/result.hpp"

namespace helios::model {

/// How a family cuts text, as the parts in which the families' expressions differ. Every text is cut by the
/// first of these that matches, in this order: contraction, letters, numbers, symbols, line breaks, white
/// space.
struct PreTokenizer {
  enum class Numbers : std::uint8_t { stay, each, runs };

  Numbers numbers_first =
      Numbers::stay;        // cut out before all else: every \p{N} on its own, or whole runs of them
  bool whole = false;       // what is between them is one piece: nothing below applies
  bool marks_only = false;  // every U+2581 begins a piece, and nothing else does: nothing below applies
  bool any_case = false;    // contractions ('s 't 're 've 'm 'll 'd) in capitals too
  bool any_lead = false;    // letters may take any [^\r\n\p{L}\p{N}] in front, not only a space
  std::uint8_t numbers_max =
      0;  // most \p{N} in a piece, which then takes no space in front; 0: any number, and ` ?`
  bool line_breaks = false;  // symbols take the [\r\n]* behind them, and \s*[\r\n]+ is a piece

  /// The whole text is one piece.
  static const PreTokenizer text;
  /// 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
  static const PreTokenizer gpt2;
  /// First every \p{N} on its own, then gpt2 within what is between them.
  static const PreTokenizer smollm;
  /// (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|
  /// ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
  static const PreTokenizer llama3;
  /// llama3 with \p{N} in place of \p{N}{1,3}.
  static const PreTokenizer qwen2;

  bool operator==(const PreTokenizer&) const = default;
};

inline constexpr PreTokenizer PreTokenizer::text{.whole = true};
inline constexpr PreTokenizer PreTokenizer::gpt2{};
inline constexpr PreTokenizer PreTokenizer::smollm{.numbers_first = Numbers::each};
inline constexpr PreTokenizer PreTokenizer::llama3{
    .any_case = true, .any_lead = true, .numbers_max = 3, .line_breaks = true};
inline constexpr PreTokenizer PreTokenizer::qwen2{
    .any_case = true, .any_lead = true, .numbers_max = 1, .line_breaks = true};

/// What tokenizer.ggml.pre says by a name.
struct NamedPreTokenizer {
  std::string_view name;
  PreTokenizer rules;
  bool whole_tokens = false;  // a piece that is a token becomes it, whatever the merges say
  bool add_bos = false;       // where tokenizer.ggml.add_bos_token is silent
  bool nfc = false;           // the family's own tokenizer composes text (NFC) before it cuts it
};

/// By the name in tokenizer.ggml.pre. Errors: unsupported, naming it and those that are known.
Result<NamedPreTokenizer> pretokenizer_by_name(std::string_view name);

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
  PieceReader(const PreTokenizer& rules, std::string_view text) : rules_(rules), rest_(text) {}
  /// The next piece, or nullopt at the end.
  std::optional<std::string_view> next();

 private:
  PreTokenizer rules_;
  std::string_view rest_;
  std::string_view segment_;  // what is left before the next number that was cut out
};

}  // namespace helios::model
