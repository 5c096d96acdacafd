#include "protocol/line_parser.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

namespace helios::protocol {

namespace {

constexpr std::array<std::string_view, 10> kHttpMethods = {"GET",     "POST",  "HEAD",    "PUT",   "DELETE",
                                                           "OPTIONS", "PATCH", "CONNECT", "TRACE", "PRI"};
constexpr char kTlsHandshake = 0x16;  // first byte of a ClientHello record
constexpr std::size_t kMaxCountDigits = 12;

char upper(char c) {
  return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
}

std::string upper(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(), [](char c) { return upper(c); });
  return result;
}

bool is_key_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
}

/// Tab is a blank between words; any other control byte means binary input or a broken client.
bool has_control_byte(std::string_view line) {
  return std::any_of(line.begin(), line.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return (byte < 0x20 && c != '\t') || byte == 0x7f;
  });
}

/// A browser or a forged cross-site request that talks HTTP to this port must be cut off, not half
/// understood.
bool looks_like_http(std::string_view verb, std::string_view line, bool first_line) {
  if (std::find(kHttpMethods.begin(), kHttpMethods.end(), verb) != kHttpMethods.end()) return true;
  if (verb.starts_with("HOST:")) return true;
  if (!first_line || verb == "GEN") return false;  // a GEN may end in quoted text about HTTP
  const std::size_t space = line.rfind(' ');
  return space != std::string_view::npos && line.substr(space + 1).starts_with("HTTP/");
}

void skip_blanks(std::string_view& rest) {
  while (!rest.empty() && (rest.front() == ' ' || rest.front() == '\t')) rest.remove_prefix(1);
}

std::size_t word_size(std::string_view rest) {
  const std::size_t end = rest.find_first_of(" \t");
  return end == std::string_view::npos ? rest.size() : end;
}

/// Reads `"…"` at the front of rest; the closing quote must end the word.
std::optional<std::string> read_quoted(std::string_view& rest, std::string& problem) {
  std::size_t end = 1;
  while (end < rest.size() && rest[end] != '"') end += rest[end] == '\\' ? 2 : 1;
  if (end >= rest.size()) {
    problem = "a quote is not closed";
    return std::nullopt;
  }
  std::optional<std::string> text = unescape(rest.substr(1, end - 1));
  if (!text) {
    problem = R"(unknown escape: use \n \r \t \s \\ \" or \xHH)";
    return std::nullopt;
  }
  rest.remove_prefix(end + 1);
  if (!rest.empty() && rest.front() != ' ' && rest.front() != '\t') {
    problem = "a blank must follow a closing quote";
    return std::nullopt;
  }
  return text;
}

/// What follows the verb. `quoted_text` takes GEN's text where its count would stand.
struct Words {
  std::vector<std::string> words;
  std::vector<Option> options;
  std::optional<std::string> text;
  std::string problem;  // not empty: the line does not parse
};

Words split(std::string_view rest, std::size_t max_words) {
  Words result;
  for (skip_blanks(rest); !rest.empty(); skip_blanks(rest)) {
    if (result.words.size() + result.options.size() >= max_words) {
      result.problem = fmt::format("more than {} words", max_words);
      return result;
    }
    if (rest.front() == '"') {
      std::optional<std::string> text = read_quoted(rest, result.problem);
      if (!text) return result;
      if (result.text) {
        result.problem = "two quoted texts in one line";
        return result;
      }
      result.text = std::move(*text);
      continue;
    }
    std::size_t key_size = 0;
    while (key_size < rest.size() && is_key_char(rest[key_size])) ++key_size;
    if (key_size == 0 || key_size == rest.size() || rest[key_size] != '=') {
      const std::size_t size = word_size(rest);
      result.words.emplace_back(rest.substr(0, size));
      rest.remove_prefix(size);
      continue;
    }
    Option option{.key = std::string(rest.substr(0, key_size)), .value = {}};
    rest.remove_prefix(key_size + 1);
    std::optional<std::string> value;
    if (!rest.empty() && rest.front() == '"') {
      value = read_quoted(rest, result.problem);
    } else {
      const std::size_t size = word_size(rest);
      value = unescape(rest.substr(0, size));
      rest.remove_prefix(size);
      if (!value)
        result.problem = fmt::format(R"({}: unknown escape: use \n \r \t \s \\ \" or \xHH)", option.key);
    }
    if (!value) return result;
    option.value = std::move(*value);
    result.options.push_back(std::move(option));
  }
  return result;
}

/// Decimal digits only: a sign, a blank or a wrapped count would shift the framing.
std::optional<std::size_t> parse_count(std::string_view text) {
  if (text.empty() || text.size() > kMaxCountDigits) return std::nullopt;
  std::size_t value = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    value = value * 10 + static_cast<std::size_t>(c - '0');
  }
  return value;
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

std::optional<ParserEvent> LineParser::next(std::string_view& input) {
  while (!input.empty()) {
    switch (state_) {
      case State::dead:
        input = {};
        return std::nullopt;
      case State::line: {
        if (first_line_ && buffer_.empty() && input.front() == kTlsHandshake) {
          return fatal(Fault::Kind::foreign, "TLS on a plain-text port");
        }
        const std::size_t newline = input.find('\n');
        const std::size_t size = std::min(newline, input.size());
        if (size > limits_.line_bytes - buffer_.size()) {
          return fatal(Fault::Kind::line_too_long,
                       fmt::format("a line may have {} bytes", limits_.line_bytes));
        }
        buffer_.append(input.substr(0, size));
        input.remove_prefix(size);
        if (newline == std::string_view::npos) return std::nullopt;
        input.remove_prefix(1);
        if (std::optional<ParserEvent> event = end_of_line()) return event;
        break;
      }
      case State::payload: {
        const std::size_t size = std::min(payload_size_ - payload_.size(), input.size());
        payload_.append(input.substr(0, size));
        input.remove_prefix(size);
        if (payload_.size() == payload_size_) state_ = State::payload_end;
        break;
      }
      case State::payload_end: {
        const char c = input.front();
        input.remove_prefix(1);
        if (c == '\r' && buffer_.empty()) {
          buffer_.push_back(c);
        } else if (c == '\n') {
          return end_of_payload();
        } else {
          return fatal(
              Fault::Kind::bad_frame,
              fmt::format("no line end after a payload of {} bytes: is its count right?", payload_size_));
        }
        break;
      }
    }
  }
  return std::nullopt;
}

std::optional<ParserEvent> LineParser::finish() {
  std::optional<ParserEvent> event;
  if (state_ == State::line && !buffer_.empty()) event = end_of_line();
  if (!event && state_ == State::payload_end) event = end_of_payload();
  if (!event && state_ == State::payload) {
    event = fatal(Fault::Kind::bad_frame, fmt::format("the input ended after {} of a payload's {} bytes",
                                                      payload_.size(), payload_size_));
  }
  state_ = State::dead;
  return event;
}

std::optional<ParserEvent> LineParser::end_of_line() {
  std::string line = std::exchange(buffer_, {});
  if (line.ends_with('\r')) line.pop_back();
  return parse(line);
}

std::optional<ParserEvent> LineParser::parse(std::string_view line) {
  skip_blanks(line);
  if (line.empty()) return std::nullopt;  // blank lines are allowed between commands
  const bool first = std::exchange(first_line_, false);
  Line command;
  std::string_view rest = line;
  command.verb = upper(rest.substr(0, word_size(rest)));
  rest.remove_prefix(command.verb.size());
  if (looks_like_http(command.verb, line, first))
    return fatal(Fault::Kind::foreign, "HTTP on the line-protocol port");
  const bool is_gen = command.verb == "GEN";
  if (has_control_byte(line)) {
    // A GEN may have had a count that cannot be read any more.
    if (is_gen) return fatal(Fault::Kind::bad_frame, "control bytes in a GEN line");
    return Fault{Fault::Kind::bad_line, "control bytes in a command line", false};
  }
  if (command.verb == "AUTH" || command.verb == "PING") {
    skip_blanks(rest);
    while (!rest.empty() && (rest.back() == ' ' || rest.back() == '\t')) rest.remove_suffix(1);
    if (!rest.empty()) command.words.emplace_back(rest);
    return command;
  }
  Words words = split(rest, limits_.words);
  if (!is_gen) {
    if (words.problem.empty() && words.text) words.problem = "only GEN takes a quoted text";
    if (!words.problem.empty()) {
      return Fault{Fault::Kind::bad_line, fmt::format("{}: {}", command.verb, words.problem), false};
    }
    command.words = std::move(words.words);
    command.options = std::move(words.options);
    return command;
  }
  // `GEN tag "text" …` is whole already; anything else is followed by a payload whose size must be known.
  std::string_view tail = rest;
  skip_blanks(tail);
  tail.remove_prefix(word_size(tail));
  skip_blanks(tail);
  const bool quoted_form = tail.starts_with('"');
  if (quoted_form) {
    if (words.problem.empty() && words.words.size() != 1)
      words.problem = "the form is GEN tag \"text\" key=value …";
    if (!words.problem.empty()) return Fault{Fault::Kind::bad_line, "GEN: " + words.problem, false};
  } else {
    if (words.problem.empty() && words.text)
      words.problem = "a quoted text stands in place of the byte count";
    if (words.problem.empty() && words.words.size() != 2)
      words.problem = "the form is GEN tag nbytes key=value …";
    if (!words.problem.empty()) return fatal(Fault::Kind::bad_frame, "GEN: " + words.problem);
    const std::optional<std::size_t> count = parse_count(words.words[1]);
    if (!count) {
      return fatal(Fault::Kind::bad_frame,
                   fmt::format("GEN: '{}' is no byte count", words.words[1].substr(0, 32)));
    }
    if (!payloads_allowed_) return fatal(Fault::Kind::payload_refused, "send AUTH before GEN");
    if (*count > limits_.payload_bytes) {
      return fatal(Fault::Kind::payload_too_long, fmt::format("a payload may have {} bytes, this one has {}",
                                                              limits_.payload_bytes, *count));
    }
    payload_size_ = *count;
    words.words.pop_back();
  }
  command.words = std::move(words.words);
  command.options = std::move(words.options);
  command.text = std::move(words.text);
  if (quoted_form) return command;
  pending_ = std::move(command);
  state_ = payload_size_ == 0 ? State::payload_end : State::payload;
  return std::nullopt;
}

ParserEvent LineParser::end_of_payload() {
  buffer_.clear();
  state_ = State::line;
  pending_.text = std::exchange(payload_, {});
  return std::exchange(pending_, {});
}

ParserEvent LineParser::fatal(Fault::Kind kind, std::string message) {
  state_ = State::dead;
  buffer_ = {};
  payload_ = {};
  return Fault{kind, std::move(message), true};
}

std::optional<std::string> unescape(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\') {
      result.push_back(text[i]);
      continue;
    }
    if (++i == text.size()) return std::nullopt;
    switch (text[i]) {
      case 'n':
        result.push_back('\n');
        break;
      case 'r':
        result.push_back('\r');
        break;
      case 't':
        result.push_back('\t');
        break;
      case 's':
        result.push_back(' ');
        break;
      case '\\':
        result.push_back('\\');
        break;
      case '"':
        result.push_back('"');
        break;
      case 'x': {
        if (i + 2 >= text.size()) return std::nullopt;
        const int high = hex_digit(text[i + 1]), low = hex_digit(text[i + 2]);
        if (high < 0 || low < 0) return std::nullopt;
        result.push_back(static_cast<char>(high * 16 + low));
        i += 2;
        break;
      }
      default:
        return std::nullopt;
    }
  }
  return result;
}

bool is_tag(std::string_view text) {
  return !text.empty() && text.size() <= 64 && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || c == '-';
  });
}

bool is_utf8(std::string_view bytes) {
  for (std::size_t i = 0; i < bytes.size();) {
    const auto lead = static_cast<unsigned char>(bytes[i]);
    const std::size_t size = lead < 0x80   ? 1
                             : lead < 0xc2 ? 0
                             : lead < 0xe0 ? 2
                             : lead < 0xf0 ? 3
                             : lead < 0xf5 ? 4
                                           : 0;
    if (size == 0 || size > bytes.size() - i) return false;
    std::uint32_t code = size == 1 ? lead : lead & (0x7fU >> size);
    for (std::size_t k = 1; k < size; ++k) {
      const auto byte = static_cast<unsigned char>(bytes[i + k]);
      if ((byte & 0xc0U) != 0x80U) return false;
      code = (code << 6U) | (byte & 0x3fU);
    }
    if ((size == 3 && (code < 0x800 || (code >= 0xd800 && code < 0xe000))) ||
        (size == 4 && (code < 0x10000 || code > 0x10ffff))) {
      return false;
    }
    i += size;
  }
  return true;
}

}  // namespace helios::protocol
