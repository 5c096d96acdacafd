#pragma once
// Bytes from a client to command lines. Pure: no sockets, no clock, no model.

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace helios::protocol {

/// Bounds of one connection's input; all are stated in the INFO greeting.
struct ParserLimits {
  std::size_t line_bytes = 16 * 1024;       // bytes before LF, a CR included
  std::size_t payload_bytes = 1024 * 1024;  // of one counted payload
  std::size_t words = 64;                   // words and options of one line
};

/// `key=value` of a line; the value is unescaped.
struct Option {
  std::string key;
  std::string value;
  friend bool operator==(const Option&, const Option&) = default;
};

/// One command: `VERB word word key=value …`. The verb is upper-cased; for AUTH and PING the rest of the line
/// is one raw word. `text` is GEN's text: the counted payload or the unescaped quoted string.
struct Line {
  std::string verb;
  std::vector<std::string> words;
  std::vector<Option> options;
  std::optional<std::string> text;
  friend bool operator==(const Line&, const Line&) = default;
};

/// Input that is no command. After a fatal fault the place in the byte stream is lost and the parser stays
/// silent.
struct Fault {
  enum class Kind : unsigned char {
    bad_line,          // the line does not parse; the next line is intact
    bad_frame,         // a counted frame does not parse: fatal
    line_too_long,     // fatal
    payload_too_long,  // fatal
    payload_refused,   // payloads are switched off until AUTH: fatal
    foreign,           // HTTP or TLS, not this protocol: fatal, and not answered
  };
  Kind kind = Kind::bad_line;
  std::string message;
  bool fatal = false;
  friend bool operator==(const Fault&, const Fault&) = default;
};

using ParserEvent = std::variant<Line, Fault>;

/// Incremental parser of docs/PROTOCOL.md. Splitting the same bytes in any way gives the same events. It
/// holds at most line_bytes + payload_bytes, checked before a byte is stored; a payload's memory grows with
/// what arrived, not with what its header claims.
class LineParser {
 public:
  explicit LineParser(ParserLimits limits = {}) : limits_(limits) {}

  /// Consumes bytes from the front of `input` up to the end of the next event. Empty: all input is consumed
  /// and more is needed. Call again while it returns an event.
  std::optional<ParserEvent> next(std::string_view& input);

  /// The client sent its last byte. A last line, or payload, that lacks only its line end is accepted.
  std::optional<ParserEvent> finish();

  /// False refuses counted payloads before they are buffered (a client that has not authenticated).
  void allow_payloads(bool allowed) { payloads_allowed_ = allowed; }

  bool in_line() const { return state_ == State::line && !buffer_.empty(); }
  bool in_payload() const { return state_ == State::payload || state_ == State::payload_end; }
  std::size_t buffered_bytes() const { return buffer_.size() + payload_.size(); }

 private:
  enum class State : unsigned char { line, payload, payload_end, dead };

  std::optional<ParserEvent> end_of_line();
  std::optional<ParserEvent> parse(std::string_view line);
  ParserEvent end_of_payload();
  ParserEvent fatal(Fault::Kind kind, std::string message);

  ParserLimits limits_;
  State state_ = State::line;
  bool first_line_ = true;
  bool payloads_allowed_ = true;
  std::string buffer_;   // the line so far, without its LF; or the line end after a payload
  std::string payload_;  // the payload so far
  std::size_t payload_size_ = 0;
  Line pending_;  // GEN whose payload is being read
};

/// Resolves \n \r \t \s (space) \\ \" and \xHH. Empty for an unknown or cut escape.
std::optional<std::string> unescape(std::string_view text);

/// Tags are [A-Za-z0-9_.-]{1,64}.
bool is_tag(std::string_view text);

/// Whether bytes are well-formed UTF-8 (no overlong forms, surrogates or values over U+10FFFF).
bool is_utf8(std::string_view bytes);

}  // namespace helios::protocol
