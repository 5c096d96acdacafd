#pragma once
// The tokens of a vocabulary: how they are spelt, their bytes and their kinds.

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "runtime/result.hpp"

namespace helios::model {

/// GGUF's tokenizer.ggml.token_type.
enum class TokenType : std::uint8_t {
  normal = 1,
  unknown = 2,
  control = 3,
  user_defined = 4,
  unused = 5,
  byte = 6
};

/// How normal tokens are spelt. Control and user-defined tokens are spelt as they are.
/// byte_level: GPT-2's map of 256 bytes to printable code points.
/// marked: text in which U+2581 stands for a space; a token of type byte is spelt <0x0A> and stands for that
/// byte.
enum class Spelling : std::uint8_t { byte_level, marked };

/// U+2581, in UTF-8.
inline constexpr std::string_view kSpaceMark = "\xE2\x96\x81";

class Vocabulary {
 public:
  static constexpr std::size_t kMaxTokens = 1 << 21;
  static constexpr std::size_t kMaxTokenBytes = 1 << 12;

  /// `types` may be empty (all normal). Errors: bad_file naming the token.
  static Result<Vocabulary> create(std::span<const std::string> tokens, std::span<const std::int64_t> types,
                                   Spelling spelling = Spelling::byte_level);

  Vocabulary() = default;
  Vocabulary(Vocabulary&&) = default;  // move-only: the index points into the spellings
  Vocabulary& operator=(Vocabulary&&) = default;

  std::int32_t size() const noexcept { return static_cast<std::int32_t>(types_.size()); }
  bool contains(std::int32_t id) const noexcept { return id >= 0 && id < size(); }
  /// Raw bytes that the token stands for; empty for an id outside the vocabulary.
  std::string_view bytes_of(std::int32_t id) const noexcept;
  /// As spelt in the file.
  const std::string& spelling(std::int32_t id) const { return spellings_[static_cast<std::size_t>(id)]; }
  TokenType type(std::int32_t id) const { return types_[static_cast<std::size_t>(id)]; }
  /// A control token, or the unknown one: it steers the model and is not text.
  bool is_special(std::int32_t id) const noexcept;
  /// By spelling.
  std::optional<std::int32_t> find(std::string_view spelling) const;
  /// The token of one byte, or -1.
  std::int32_t byte_token(unsigned char byte) const noexcept { return byte_tokens_[byte]; }
  /// FNV-1a, 64 bits, over each spelling in id order followed by a zero byte; 16 hex digits. Names the
  /// vocabulary in exit files, whichever format the model came in.
  const std::string& hash() const noexcept { return hash_; }

 private:
  std::vector<std::string> spellings_;
  std::vector<TokenType> types_;
  std::string bytes_;                   // all tokens' bytes, end to end
  std::vector<std::uint32_t> offsets_;  // size() + 1
  std::unordered_map<std::string_view, std::int32_t>
      by_spelling_;  // views into spellings_, which never moves
  std::array<std::int32_t, 256> byte_tokens_{};
  std::string hash_;
};

/// The byte that a name like <0x0A> stands for; -1: it is no such name.
int byte_of_name(std::string_view spelling) noexcept;
/// GPT-2's printable code point for a byte, and back (-1: not one of them).
char32_t printable_of_byte(unsigned char byte) noexcept;
int byte_of_printable(char32_t code_point) noexcept;
/// Appends it as UTF-8.
void append_printable(std::string& out, unsigned char byte);

}  // namespace helios::model
