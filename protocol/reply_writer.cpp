#include "protocol/reply_writer.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <utility>

namespace helios::protocol {

namespace {

/// The longest front of text of at most max_bytes that ends between code points.
std::string_view whole_code_points(std::string_view text, std::size_t max_bytes) {
  if (text.size() <= max_bytes) return text;
  std::size_t size = max_bytes;
  while (size > 0 && (static_cast<unsigned char>(text[size]) & 0xc0U) == 0x80U) --size;
  return text.substr(
      0, size == 0 ? max_bytes : size);  // no code point is that long: invalid bytes are cut anywhere
}

}  // namespace

std::string_view error_word(Errc code) noexcept {
  switch (code) {
    case Errc::bad_request:
      return "BADREQ";
    case Errc::too_long:
      return "TOOLONG";
    case Errc::busy:
      return "BUSY";
    case Errc::no_model:
      return "NOMODEL";
    case Errc::draining:
      return "DRAINING";
    case Errc::cancelled:
      return "CANCELLED";
    case Errc::deadline_exceeded:
      return "TIMEOUT";
    case Errc::out_of_memory:
      return "NOMEM";
    case Errc::unsupported:
      return "UNSUPPORTED";
    case Errc::dropped:
    case Errc::io_error:
    case Errc::bad_file:
    case Errc::device_fault:
    case Errc::internal:
      return "INTERNAL";
  }
  return "INTERNAL";
}

std::string one_line(std::string_view text, std::size_t max_bytes) {
  std::string line(whole_code_points(text, max_bytes));
  for (char& c : line) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) c = ' ';
  }
  return line;
}

void ReplyWriter::info(std::string_view json) {
  push_control(fmt::format("INFO {}\r\n", json));
}

void ReplyWriter::pong(std::string_view cookie) {
  push_control(cookie.empty() ? "PONG\r\n" : fmt::format("PONG {}\r\n", cookie));
}

void ReplyWriter::ok(std::string_view tag, std::string_view text) {
  push_control(fmt::format("OK {} {}\r\n", tag, one_line(text)));
}

void ReplyWriter::stats(std::string_view tag, std::string_view json) {
  push_control(fmt::format("STATS {} {}\r\n", tag, json));
}

void ReplyWriter::error(std::string_view tag, std::string_view word, std::string_view text, bool closing) {
  push_control(fmt::format("ERR {} {} {}{}\r\n", tag, word, one_line(text), closing ? "; closing" : ""));
}

void ReplyWriter::open(std::string_view tag) {
  Stream& stream = streams_.emplace_back();
  stream.tag = tag;
  push(stream, fmt::format("ACK {}\r\n", tag));
}

void ReplyWriter::token(std::string_view tag, std::string_view text, std::string_view extra) {
  Stream* stream = find(tag);
  if (stream == nullptr || stream->ended) return;
  do {
    const std::string_view part = whole_code_points(text, limits_.frame_bytes);
    push(*stream, fmt::format("TOK {} {} {}{}\r\n{}\r\n", tag, stream->next_seq++, part.size(), extra, part));
    text.remove_prefix(part.size());
    extra = {};
  } while (!text.empty());
}

void ReplyWriter::end(std::string_view tag, std::string_view rest) {
  Stream* stream = find(tag);
  if (stream == nullptr || stream->ended) return;
  stream->ended = true;
  push(*stream, fmt::format("END {} {}\r\n", tag, one_line(rest, 4096)));
}

void ReplyWriter::fail(std::string_view tag, std::string_view word, std::string_view text) {
  Stream* stream = find(tag);
  if (stream == nullptr || stream->ended) return;
  stream->ended = true;
  push(*stream, fmt::format("ERR {} {} {}\r\n", tag, word, one_line(text)));
}

bool ReplyWriter::has_room(std::string_view tag) const {
  const auto found =
      std::find_if(streams_.begin(), streams_.end(), [&](const Stream& s) { return s.tag == tag; });
  return found == streams_.end() || found->bytes < limits_.stream_bytes;
}

bool ReplyWriter::holds(std::string_view tag) const {
  return std::any_of(streams_.begin(), streams_.end(), [&](const Stream& s) { return s.tag == tag; });
}

std::string ReplyWriter::take(std::size_t max_bytes) {
  std::string bytes;
  const auto append = [&](std::deque<std::string>& frames) {
    const std::size_t size = frames.front().size();
    bytes += frames.front();
    frames.pop_front();
    queued_bytes_ -= size;
    return size;
  };
  while (!control_.empty() && (bytes.empty() || bytes.size() < max_bytes)) control_size_ -= append(control_);
  // Each turn adds at least one frame or grows a credit towards one, so the loop ends.
  while (!streams_.empty() && (bytes.empty() || bytes.size() < max_bytes)) {
    if (turn_ >= streams_.size()) turn_ = 0;
    Stream& stream = streams_[turn_];
    stream.credit += limits_.frame_bytes;
    while (!stream.frames.empty() && stream.frames.front().size() <= stream.credit) {
      const std::size_t size = append(stream.frames);
      stream.bytes -= size;
      stream.credit -= size;
    }
    if (!stream.frames.empty()) {
      ++turn_;
      continue;
    }
    stream.credit = 0;  // an idle stream saves nothing up
    if (stream.ended) {
      streams_.erase(streams_.begin() + static_cast<std::ptrdiff_t>(turn_));
    } else {
      ++turn_;
    }
    const bool any =
        std::any_of(streams_.begin(), streams_.end(), [](const Stream& s) { return !s.frames.empty(); });
    if (!any) break;
  }
  return bytes;
}

void ReplyWriter::clear() {
  control_.clear();
  streams_.clear();
  control_size_ = queued_bytes_ = turn_ = 0;
}

ReplyWriter::Stream* ReplyWriter::find(std::string_view tag) {
  const auto found =
      std::find_if(streams_.begin(), streams_.end(), [&](const Stream& s) { return s.tag == tag; });
  return found == streams_.end() ? nullptr : &*found;
}

void ReplyWriter::push_control(std::string frame) {
  control_size_ += frame.size();
  queued_bytes_ += frame.size();
  control_.push_back(std::move(frame));
}

void ReplyWriter::push(Stream& stream, std::string frame) {
  stream.bytes += frame.size();
  queued_bytes_ += frame.size();
  stream.frames.push_back(std::move(frame));
}

}  // namespace helios::protocol
