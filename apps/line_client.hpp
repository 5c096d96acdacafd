#pragma once
#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "runtime/result.hpp"

namespace helios::apps {

/// How one GEN ended, as the server's END or ERR line says it.
struct LineReply {
  std::string reason;                         // stop, length, cancelled
  std::map<std::string, std::string> fields;  // prompt, completion, depth, exits, ttft_ms, tok_s
};

/// A blocking client of docs/PROTOCOL.md: one connection, one request at a time. For the benchmark and the
/// chat.
class LineClient {
 public:
  /// target is HOST:PORT. Errors: bad_request for its spelling, io_error for the connection.
  static Result<LineClient> connect(const std::string& target, std::chrono::seconds timeout);
  LineClient(LineClient&& other) noexcept;
  LineClient& operator=(LineClient&& other) noexcept;
  ~LineClient();

  /// Sends GEN and calls on_text for each TOK. options is "max_tokens=16 temperature=0 …".
  /// Errors: what the server's ERR says, or io_error when the connection breaks.
  Result<LineReply> generate(std::string_view prompt, const std::string& options,
                             const std::function<void(std::string_view)>& on_text);
  /// Sends one control line (LOAD, STATS, PING) and returns the answer's first line.
  Result<std::string> command(const std::string& line);

 private:
  explicit LineClient(int socket) : socket_(socket) {}
  Result<void> send_all(std::string_view bytes);
  Result<std::string> read_line();
  Result<std::string> read_bytes(std::size_t count);
  Result<void> fill();

  int socket_ = -1;  // owned
  std::string buffer_;
  int next_tag_ = 1;
};

}  // namespace helios::apps
