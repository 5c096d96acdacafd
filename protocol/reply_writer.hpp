#pragma once
// Messages to bytes, in a fair order. Pure: no sockets, no clock.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/result.hpp"

namespace helios::protocol {

struct WriterLimits {
  std::size_t stream_bytes = 64 * 1024;  // of one tag, waiting to be sent; has_room() is false above it
  std::size_t frame_bytes = 4096;        // of one TOK payload; longer text is cut between code points
  std::size_t control_bytes =
      256 * 1024;  // of replies to commands, waiting to be sent; overflowed() above it
};

/// The stable word of an error: BADREQ, TOOLONG, BUSY, NOMODEL, DRAINING, TIMEOUT, NOMEM, UNSUPPORTED,
/// CANCELLED, INTERNAL.
std::string_view error_word(Errc code) noexcept;

/// Text of a message with line ends and control bytes replaced by blanks, cut to `max_bytes`: it can not
/// break framing.
std::string one_line(std::string_view text, std::size_t max_bytes = 512);

/// Queue of frames of one connection. Replies to commands go out first and in order; streams share what is
/// left by bytes (deficit round robin over tags), so one stream never starves another or a PONG. Frames of
/// one tag keep their order: ACK, TOK with seq 1, 2, …, then END or ERR.
class ReplyWriter {
 public:
  explicit ReplyWriter(WriterLimits limits = {}) : limits_(limits) {}

  // Replies to commands. `tag` is "-" where a command has none.
  void info(std::string_view json);
  void pong(std::string_view cookie);
  void ok(std::string_view tag, std::string_view text);
  void stats(std::string_view tag, std::string_view json);
  /// `closing` says that this is the connection's last line.
  void error(std::string_view tag, std::string_view word, std::string_view text, bool closing = false);

  // Frames of a stream.
  /// Opens the stream of `tag` with its ACK. holds(tag) must be false.
  void open(std::string_view tag);
  /// One or more TOK frames. `extra` is appended to the first one's header: " key=value …" or empty.
  void token(std::string_view tag, std::string_view text, std::string_view extra = {});
  /// `END tag rest`; the tag is free again.
  void end(std::string_view tag, std::string_view rest);
  /// `ERR tag word text` as the stream's last frame.
  void fail(std::string_view tag, std::string_view word, std::string_view text);

  bool has_room(std::string_view tag) const;  // also true for a tag without a stream
  bool holds(std::string_view tag) const;  // frames of a stream of this tag are not sent yet, or may follow
  bool overflowed() const { return control_size_ > limits_.control_bytes; }
  bool empty() const { return queued_bytes_ == 0; }
  std::size_t queued_bytes() const { return queued_bytes_; }

  /// Removes whole frames, about `max_bytes` of them and at least one when there is any.
  std::string take(std::size_t max_bytes);
  /// Drops everything (the peer is gone).
  void clear();

 private:
  struct Stream {
    std::string tag;
    std::deque<std::string> frames;
    std::size_t bytes = 0;
    std::size_t credit = 0;  // of the deficit round robin
    std::uint64_t next_seq = 1;
    bool ended = false;
  };

  Stream* find(std::string_view tag);
  void push_control(std::string frame);
  void push(Stream& stream, std::string frame);

  WriterLimits limits_;
  std::deque<std::string> control_;
  std::vector<Stream> streams_;  // at most the connection's live requests
  std::size_t turn_ = 0;         // index of the stream served next
  std::size_t control_size_ = 0, queued_bytes_ = 0;
};

}  // namespace helios::protocol
