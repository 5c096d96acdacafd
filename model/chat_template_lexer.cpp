#include "model/chat_template_lexer.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace helios::model::jinja {
namespace {

bool is_blank(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}
bool is_name_start(char c) {
  return ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') || c == '_';
}
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

constexpr std::array<std::string_view, 6> kPairs = {"==", "!=", "<=", ">=", "//", "**"};
constexpr std::string_view kSingles = "+-*/%~<>=()[]{}.,:|";

// Jinja reads every line end as \n and drops one at the very end.
std::string normalize(std::string_view source) {
  std::string out;
  out.reserve(source.size());
  for (std::size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r') {
      out += '\n';
      if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
    } else {
      out += source[i];
    }
  }
  if (!out.empty() && out.back() == '\n') out.pop_back();
  return out;
}

void append_code_point(std::string& out, unsigned code) {
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xC0 | (code >> 6));
    out += static_cast<char>(0x80 | (code & 0x3F));
  } else {
    out += static_cast<char>(0xE0 | (code >> 12));
    out += static_cast<char>(0x80 | ((code >> 6) & 0x3F));
    out += static_cast<char>(0x80 | (code & 0x3F));
  }
}

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(normalize(source)), rest_(source_) {}

  std::vector<Token> run() {
    while (!rest_.empty()) text_and_tag();
    add(Token::Kind::end, "");
    return std::move(tokens_);
  }

 private:
  void add(Token::Kind kind, std::string text, std::int64_t integer = 0) {
    tokens_.push_back({kind, std::move(text), integer, line_});
  }

  void skip(std::size_t count) {
    line_ +=
        static_cast<int>(std::count(rest_.begin(), rest_.begin() + static_cast<std::ptrdiff_t>(count), '\n'));
    rest_.remove_prefix(count);
  }

  static std::size_t find_tag(std::string_view text) {
    for (std::size_t at = text.find('{'); at != std::string_view::npos; at = text.find('{', at + 1)) {
      if (at + 1 < text.size() && (text[at + 1] == '{' || text[at + 1] == '%' || text[at + 1] == '#'))
        return at;
    }
    return std::string_view::npos;
  }

  void text_and_tag() {
    const std::size_t at = find_tag(rest_);
    if (at == std::string_view::npos) {
      add(Token::Kind::text, std::string(rest_));
      return skip(rest_.size());
    }
    const char opener = rest_[at + 1];
    const char sign = at + 2 < rest_.size() ? rest_[at + 2] : '\0';
    std::string_view text = rest_.substr(0, at);
    if (sign == '-') {
      while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
    } else if (opener != '{' && sign != '+') {
      text = without_indent(text);
    }
    if (!text.empty()) add(Token::Kind::text, std::string(text));
    skip(at + 2 + (sign == '-' || sign == '+' ? 1 : 0));
    if (opener == '#') return comment();
    const bool block = opener == '%';
    add(block ? Token::Kind::block_begin : Token::Kind::print_begin, "");
    inside(block);
  }

  // lstrip_blocks: white space alone between the beginning of the line and a block goes away.
  std::string_view without_indent(std::string_view text) const {
    const std::size_t newline = text.rfind('\n');
    const std::size_t begin = newline == std::string_view::npos ? 0 : newline + 1;
    if (begin == 0 && !line_starting_) return text;
    const std::string_view indent = text.substr(begin);
    return std::all_of(indent.begin(), indent.end(), is_blank) ? text.substr(0, begin) : text;
  }

  // After a tag's closing: `-` takes all white space that follows; trim_blocks takes one line end after a
  // block.
  void after_tag(char sign, bool trims) {
    std::size_t count = 0;
    if (sign == '-') {
      while (count < rest_.size() && is_blank(rest_[count])) ++count;
    } else if (trims && sign != '+' && !rest_.empty() && rest_[0] == '\n') {
      count = 1;
    }
    line_starting_ = count > 0 && rest_[count - 1] == '\n';
    skip(count);
  }

  void comment() {
    const std::size_t close = rest_.find("#}");
    if (close == std::string_view::npos) raise(Errc::bad_file, line_, "a comment is not closed");
    const char sign =
        close > 0 && (rest_[close - 1] == '-' || rest_[close - 1] == '+') ? rest_[close - 1] : '\0';
    skip(close + 2);
    after_tag(sign, true);
  }

  // True at "%}", "-%}", "+%}" (or }}): consumes it.
  bool close_tag(bool block) {
    const std::string_view closer = block ? "%}" : "}}";
    char sign = '\0';
    std::string_view ahead = rest_;
    if (!ahead.empty() && (ahead[0] == '-' || (block && ahead[0] == '+'))) {
      sign = ahead[0];
      ahead.remove_prefix(1);
    }
    // A mapping inside {{ }} may end with a brace of its own: only outside of brackets does }} close.
    if (ahead.substr(0, 2) != closer || !brackets_.empty()) return false;
    skip(2 + (sign != '\0' ? 1 : 0));
    add(block ? Token::Kind::block_end : Token::Kind::print_end, "");
    after_tag(sign, block);
    return true;
  }

  void inside(bool block) {
    brackets_.clear();
    while (true) {
      while (!rest_.empty() && is_blank(rest_[0])) skip(1);
      if (rest_.empty()) raise(Errc::bad_file, line_, block ? "{% is not closed" : "{{ is not closed");
      if (close_tag(block)) return;
      token();
    }
  }

  void token() {
    const char c = rest_[0];
    if (is_name_start(c)) {
      std::size_t length = 1;
      while (length < rest_.size() && (is_name_start(rest_[length]) || is_digit(rest_[length]))) ++length;
      add(Token::Kind::name, std::string(rest_.substr(0, length)));
      return skip(length);
    }
    if (is_digit(c)) return number();
    if (c == '\'' || c == '"') return string(c);
    for (const std::string_view pair : kPairs) {
      if (rest_.substr(0, 2) != pair) continue;
      add(Token::Kind::op, std::string(pair));
      return skip(2);
    }
    if (kSingles.find(c) == std::string_view::npos) {
      const bool printable = c > ' ' && c <= '~';
      raise(Errc::bad_file, line_,
            printable ? std::string("unexpected '") + c + "'" : "an unexpected character");
    }
    if (c == '(' || c == '[' || c == '{') brackets_ += c;
    if (c == ')' || c == ']' || c == '}') {
      const char opener = c == ')' ? '(' : c == ']' ? '[' : '{';
      if (brackets_.empty() || brackets_.back() != opener) {
        raise(Errc::bad_file, line_, std::string("'") + c + "' closes nothing");
      }
      brackets_.pop_back();
    }
    add(Token::Kind::op, std::string(1, c));
    skip(1);
  }

  void number() {
    std::int64_t value = 0;
    std::size_t length = 0;
    for (; length < rest_.size() && is_digit(rest_[length]); ++length) {
      if (__builtin_mul_overflow(value, 10, &value) ||
          __builtin_add_overflow(value, rest_[length] - '0', &value)) {
        raise(Errc::bad_file, line_, "a number is too large");
      }
    }
    if (length + 1 < rest_.size() && rest_[length] == '.' && is_digit(rest_[length + 1])) {
      raise(Errc::unsupported, line_, "a number with a point is not supported");
    }
    if (length < rest_.size() && is_name_start(rest_[length])) {
      raise(Errc::bad_file, line_, "a name begins with a digit");
    }
    add(Token::Kind::integer, std::string(rest_.substr(0, length)), value);
    skip(length);
  }

  void string(char quote) {
    std::string value;
    std::size_t at = 1;
    while (true) {
      if (at >= rest_.size()) raise(Errc::bad_file, line_, "a string is not closed");
      const char c = rest_[at++];
      if (c == quote) break;
      if (c != '\\' || at >= rest_.size()) {
        value += c;
      } else {
        escape(at, value);
      }
    }
    add(Token::Kind::string, std::move(value));
    skip(at);
  }

  // Python's escapes; an unknown one keeps its backslash.
  void escape(std::size_t& at, std::string& value) {
    constexpr std::string_view kNames = "nrtabfv\\'\"";
    constexpr std::string_view kMeanings = "\n\r\t\a\b\f\v\\'\"";
    const char c = rest_[at++];
    if (const auto known = kNames.find(c); known != std::string_view::npos) {
      value += kMeanings[known];
    } else if (c == 'x' || c == 'u') {
      append_code_point(value, hex(at, c == 'x' ? 2 : 4));
    } else if (is_digit(c) || c == 'N' || c == 'U' || c == '\n') {
      raise(Errc::unsupported, line_,
            "the escape '\\" + (c == '\n' ? std::string("newline") : std::string(1, c)) +
                "' in a string is not supported");
    } else {
      value += '\\';
      value += c;
    }
  }

  unsigned hex(std::size_t& at, int digits) {
    unsigned value = 0;
    for (int i = 0; i < digits; ++i) {
      const char c = at < rest_.size() ? rest_[at++] : '\0';
      const char lower = static_cast<char>(c | 0x20);
      if (!is_digit(c) && !(lower >= 'a' && lower <= 'f'))
        raise(Errc::bad_file, line_, "a bad escape in a string");
      value = value * 16 + static_cast<unsigned>(is_digit(c) ? c - '0' : lower - 'a' + 10);
    }
    if (value >= 0xD800 && value <= 0xDFFF)
      raise(Errc::bad_file, line_, "half of a surrogate pair in a string");
    return value;
  }

  std::string source_;
  std::string_view rest_;
  std::string brackets_;
  bool line_starting_ = true;
  int line_ = 1;
  std::vector<Token> tokens_;
};

}  // namespace

void raise(Errc code, int line, std::string message) {
  throw Failure{fail(code, "chat template, line " + std::to_string(line) + ": " + std::move(message))};
}

std::vector<Token> tokenize(std::string_view source) {
  return Lexer(source).run();
}

}  // namespace helios::model::jinja
