#include "model/pretokenizer.hpp"

#include <string>

#include "model/unicode_tables.hpp"

namespace helios::model {
namespace {

enum class Kind : std::uint8_t { space, letter, number, other };

Kind kind_of(const CodePoint& point) noexcept {
  if (!point.valid) return Kind::other;
  if (is_letter(point.value)) return Kind::letter;
  if (is_space(point.value)) return Kind::space;
  return is_number(point.value) ? Kind::number : Kind::other;
}

// Bytes of the code points of `kind` that `text` begins with.
std::size_t run_of(std::string_view text, Kind kind) noexcept {
  std::size_t at = 0;
  while (at < text.size()) {
    const CodePoint point = decode_code_point(text.substr(at));
    if (kind_of(point) != kind) break;
    at += point.length;
  }
  return at;
}

// 's 't 're 've 'm 'll 'd: its length, or 0.
std::size_t contraction(std::string_view text) noexcept {
  if (text.size() < 2 || text[0] != '\'') return 0;
  if (text[1] == 's' || text[1] == 't' || text[1] == 'm' || text[1] == 'd') return 2;
  const std::string_view two = text.substr(1, 2);
  return two == "re" || two == "ve" || two == "ll" ? 3 : 0;
}

// \s+(?!\S)|\s+ : all the white space at the end of the text; before a word, all but its last code point
// (which then begins the word if it is a space, or stands alone).
std::size_t space_piece(std::string_view text) noexcept {
  std::size_t at = 0;
  std::size_t last = 0;
  while (at < text.size()) {
    const CodePoint point = decode_code_point(text.substr(at));
    if (kind_of(point) != Kind::space) return last > 0 ? last : at;
    last = at;
    at += point.length;
  }
  return at;
}

// Length of the first piece of a non-empty text under GPT-2's expression.
std::size_t gpt2_piece(std::string_view text) noexcept {
  if (const std::size_t length = contraction(text)) return length;
  const std::size_t lead = text[0] == ' ' ? 1 : 0;
  if (lead < text.size()) {
    const Kind kind = kind_of(decode_code_point(text.substr(lead)));
    if (kind != Kind::space) return lead + run_of(text.substr(lead), kind);
  }
  return space_piece(text);
}

}  // namespace

Result<PreTokenizer> pretokenizer_by_name(std::string_view name) {
  if (name == "smollm") return PreTokenizer::smollm;
  if (name == "gpt-2") return PreTokenizer::gpt2;
  return fail(Errc::unsupported,
              "tokenizer.ggml.pre is '" + std::string(name.substr(0, 80)) +
                  "', a pre-tokenizer that is not known (known: smollm, gpt-2): its ids would be "
                  "wrong, so the model is refused");
}

CodePoint decode_code_point(std::string_view text) noexcept {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const auto follows = [&](std::size_t i) { return i < text.size() && (byte(i) & 0xC0) == 0x80; };
  const unsigned char first = byte(0);
  if (first < 0x80) return {first, 1, true};
  if (first >= 0xC2 && first <= 0xDF && follows(1)) {
    return {static_cast<char32_t>((first & 0x1F) << 6 | (byte(1) & 0x3F)), 2, true};
  }
  if ((first & 0xF0) == 0xE0 && follows(1) && follows(2)) {
    const auto value = static_cast<char32_t>((first & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F));
    if (value >= 0x800 && (value < 0xD800 || value > 0xDFFF)) return {value, 3, true};
  }
  if (first >= 0xF0 && first <= 0xF4 && follows(1) && follows(2) && follows(3)) {
    const auto value = static_cast<char32_t>((first & 0x07) << 18 | (byte(1) & 0x3F) << 12 |
                                             (byte(2) & 0x3F) << 6 | (byte(3) & 0x3F));
    if (value >= 0x10000 && value <= 0x10FFFF) return {value, 4, true};
  }
  return {first, 1, false};
}

std::optional<std::string_view> PieceReader::next() {
  const auto take = [](std::string_view& from, std::size_t length) {
    const std::string_view piece = from.substr(0, length);
    from.remove_prefix(length);
    return piece;
  };
  if (kind_ == PreTokenizer::gpt2) {
    if (rest_.empty()) return std::nullopt;
    return take(rest_, gpt2_piece(rest_));
  }
  if (segment_.empty()) {
    if (rest_.empty()) return std::nullopt;
    const CodePoint first = decode_code_point(rest_);
    if (kind_of(first) == Kind::number) return take(rest_, first.length);
    std::size_t length = first.length;
    while (length < rest_.size()) {
      const CodePoint point = decode_code_point(rest_.substr(length));
      if (kind_of(point) == Kind::number) break;
      length += point.length;
    }
    segment_ = take(rest_, length);
  }
  return take(segment_, gpt2_piece(segment_));
}

}  // namespace helios::model
