#include "model/pretokenizer.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <limits>
#include <string>

#include "model/unicode_tables.hpp"
#include "model/vocabulary.hpp"

namespace helios::model {
namespace {

enum class Kind : std::uint8_t { space, letter, number, other };

Kind kind_of(const CodePoint& point) noexcept {
  if (!point.valid) return Kind::other;
  if (is_letter(point.value)) return Kind::letter;
  if (is_space(point.value)) return Kind::space;
  return is_number(point.value) ? Kind::number : Kind::other;
}

constexpr auto kAnyCount = std::numeric_limits<std::size_t>::max();

// Bytes of the code points of `kind`, at most `most` of them, that `text` begins with.
std::size_t run_of(std::string_view text, Kind kind, std::size_t most = kAnyCount) noexcept {
  std::size_t at = 0;
  for (; most > 0 && at < text.size(); --most) {
    const CodePoint point = decode_code_point(text.substr(at));
    if (kind_of(point) != kind) break;
    at += point.length;
  }
  return at;
}

constexpr bool is_line_break(char c) noexcept {
  return c == '\r' || c == '\n';
}

// 's 't 're 've 'm 'll 'd: its length, or 0. In any case an s may be the long s, U+017F, which folds to it.
std::size_t contraction(std::string_view text, bool any_case) noexcept {
  if (text.size() < 2 || text[0] != '\'') return 0;
  const auto lower = [&](std::size_t i) {
    if (i >= text.size()) return '\0';
    return any_case && text[i] >= 'A' && text[i] <= 'Z' ? static_cast<char>(text[i] | 0x20) : text[i];
  };
  const char first = lower(1);
  const char second = lower(2);
  if (first == 's' || first == 't' || first == 'm' || first == 'd') return 2;
  if (any_case && text.substr(1, 2) == "\xC5\xBF") return 3;
  return (first == 'r' && second == 'e') || (first == 'v' && second == 'e') || (first == 'l' && second == 'l')
             ? 3
             : 0;
}

// \s*[\r\n]+ (with `line_breaks`: up to the last line break) | \s+(?!\S)|\s+ : all the white space at the end
// of the text; before a word, all but its last code point (which then begins the word if it is a space, or
// stands alone).
std::size_t space_piece(std::string_view text, bool line_breaks) noexcept {
  std::size_t at = 0;
  std::size_t last = 0;
  std::size_t line_end = 0;
  while (at < text.size()) {
    const CodePoint point = decode_code_point(text.substr(at));
    if (kind_of(point) != Kind::space) break;
    last = at;
    at += point.length;
    if (line_breaks && is_line_break(text[last])) line_end = at;
  }
  if (line_end > 0) return line_end;
  return at == text.size() || last == 0 ? at : last;
}

// Length of the first piece of a non-empty text.
std::size_t first_piece(std::string_view text, const PreTokenizer& rules) noexcept {
  if (rules.whole) return text.size();
  if (rules.marks_only) return std::min(text.find(kSpaceMark, 1), text.size());
  if (const std::size_t length = contraction(text, rules.any_case)) return length;
  const CodePoint first = decode_code_point(text);
  const Kind first_kind = kind_of(first);
  const std::size_t space = text[0] == ' ' ? 1 : 0;

  std::size_t lead = space;
  if (rules.any_lead) {
    const bool leads = first_kind != Kind::letter && first_kind != Kind::number && !is_line_break(text[0]);
    lead = leads ? first.length : 0;
  }
  if (const std::size_t letters = run_of(text.substr(lead), Kind::letter)) return lead + letters;

  const std::size_t number_lead = rules.numbers_max > 0 ? 0 : space;
  const std::size_t numbers_max = rules.numbers_max > 0 ? rules.numbers_max : kAnyCount;
  if (const std::size_t numbers = run_of(text.substr(number_lead), Kind::number, numbers_max))
    return number_lead + numbers;

  if (std::size_t symbols = run_of(text.substr(space), Kind::other)) {
    symbols += space;
    while (rules.line_breaks && symbols < text.size() && is_line_break(text[symbols])) ++symbols;
    return symbols;
  }
  return space_piece(text, rules.line_breaks);
}

constexpr std::array<NamedPreTokenizer, 6> kNamed{{
    {"gpt-2", PreTokenizer::gpt2},
    {"smollm", PreTokenizer::smollm},
    {"qwen2", PreTokenizer::qwen2, false, false, true},
    {"llama-bpe", PreTokenizer::llama3, true, true},
    {"llama3", PreTokenizer::llama3, true, true},
    {"llama-v3", PreTokenizer::llama3, true, true},
}};

}  // namespace

Result<NamedPreTokenizer> pretokenizer_by_name(std::string_view name) {
  const auto* found =
      std::find_if(kNamed.begin(), kNamed.end(), [&](const auto& row) { return row.name == name; });
  if (found != kNamed.end()) return *found;
  std::string known;
  for (const NamedPreTokenizer& row : kNamed) known.append(known.empty() ? "" : ", ").append(row.name);
  return fail(Errc::unsupported, "tokenizer.ggml.pre is '" + std::string(name.substr(0, 80)) +
                                     "', a pre-tokenizer that is not known (known: " + known +
                                     "): its ids would be wrong, so the model is refused");
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
  if (segment_.empty()) {
    if (rest_.empty()) return std::nullopt;
    if (rules_.numbers_first == PreTokenizer::Numbers::stay) return take(rest_, first_piece(rest_, rules_));
    const std::size_t most = rules_.numbers_first == PreTokenizer::Numbers::each ? 1 : kAnyCount;
    if (const std::size_t numbers = run_of(rest_, Kind::number, most)) return take(rest_, numbers);
    std::size_t length = 0;
    while (length < rest_.size()) {
      const CodePoint point = decode_code_point(rest_.substr(length));
      if (kind_of(point) == Kind::number) break;
      length += point.length;
    }
    segment_ = take(rest_, length);
  }
  return take(segment_, first_piece(segment_, rules_));
}

}  // namespace helios::model
