#include "apps/line_client.hpp"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <spdlog/fmt/fmt.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

namespace helios::apps {

namespace {

constexpr std::size_t kMaxLine = 1 << 16;
constexpr std::size_t kMaxPayload = 1 << 20;

std::vector<std::string_view> split_words(std::string_view line) {
  std::vector<std::string_view> words;
  while (!line.empty()) {
    const std::size_t space = line.find(' ');
    if (space != 0) words.push_back(line.substr(0, space));
    if (space == std::string_view::npos) break;
    line.remove_prefix(space + 1);
  }
  return words;
}

}  // namespace

Result<LineClient> LineClient::connect(const std::string& target, std::chrono::seconds timeout) {
  const std::size_t colon = target.rfind(':');
  if (colon == std::string::npos || colon + 1 == target.size()) {
    return fail(Errc::bad_request, fmt::format("'{}' is not HOST:PORT, such as 127.0.0.1:7070", target));
  }
  const std::string host = target.substr(0, colon), port = target.substr(colon + 1);
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int code = ::getaddrinfo(host.c_str(), port.c_str(), &hints, &found); code != 0) {
    return fail(Errc::io_error, fmt::format("cannot resolve {}: {}", target, ::gai_strerror(code)));
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> addresses(found, ::freeaddrinfo);
  int last_error = 0;
  for (const addrinfo* a = found; a != nullptr; a = a->ai_next) {
    const int fd = ::socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC, a->ai_protocol);
    if (fd < 0) continue;
    LineClient client(fd);
    timeval limit{.tv_sec = timeout.count(), .tv_usec = 0};
    ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    ::setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    const int on = 1;
    ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (::connect(fd, a->ai_addr, a->ai_addrlen) != 0) {
      last_error = errno;
      continue;
    }
    Result<std::string> greeting = client.read_line();
    if (!greeting) return greeting.error();
    if (!greeting->starts_with("INFO ")) {
      return fail(Errc::io_error,
                  fmt::format("{} is not a HELIOS line server: it greets with '{}'", target, *greeting));
    }
    return client;
  }
  return fail(Errc::io_error, fmt::format("cannot connect to {}: {}", target, std::strerror(last_error)));
}

LineClient::LineClient(LineClient&& other) noexcept
    : socket_(std::exchange(other.socket_, -1)),
      buffer_(std::move(other.buffer_)),
      next_tag_(other.next_tag_) {}

LineClient& LineClient::operator=(LineClient&& other) noexcept {
  std::swap(socket_, other.socket_);
  std::swap(buffer_, other.buffer_);
  std::swap(next_tag_, other.next_tag_);
  return *this;
}

LineClient::~LineClient() {
  if (socket_ >= 0) ::close(socket_);
}

Result<void> LineClient::send_all(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0)
      return fail(Errc::io_error, fmt::format("the server's connection broke: {}", std::strerror(errno)));
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return {};
}

Result<void> LineClient::fill() {
  char chunk[16384];
  for (;;) {
    const ssize_t got = ::recv(socket_, chunk, sizeof chunk, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got == 0) return fail(Errc::io_error, "the server closed the connection");
    if (got < 0)
      return fail(Errc::io_error, fmt::format("no answer from the server: {}", std::strerror(errno)));
    buffer_.append(chunk, static_cast<std::size_t>(got));
    return {};
  }
}

Result<std::string> LineClient::read_line() {
  std::size_t end = 0;
  while ((end = buffer_.find('\n')) == std::string::npos) {
    if (buffer_.size() > kMaxLine) return fail(Errc::too_long, "the server sent a line of over 64 KiB");
    if (Result<void> more = fill(); !more) return more.error();
  }
  std::string line = buffer_.substr(0, end);
  buffer_.erase(0, end + 1);
  if (line.ends_with('\r')) line.pop_back();
  return line;
}

Result<std::string> LineClient::read_bytes(std::size_t count) {
  if (count > kMaxPayload) return fail(Errc::too_long, "the server sent a payload of over 1 MiB");
  while (buffer_.size() < count) {
    if (Result<void> more = fill(); !more) return more.error();
  }
  std::string bytes = buffer_.substr(0, count);
  buffer_.erase(0, count);
  return bytes;
}

Result<LineReply> LineClient::generate(std::string_view prompt, const std::string& options,
                                       const std::function<void(std::string_view)>& on_text) {
  const std::string tag = fmt::format("r{}", next_tag_++);
  const std::string frame = fmt::format("GEN {} {} {}\r\n{}\r\n", tag, prompt.size(), options, prompt);
  if (Result<void> sent = send_all(frame); !sent) return sent.error();
  for (;;) {
    Result<std::string> line = read_line();
    if (!line) return line.error();
    const std::vector<std::string_view> words = split_words(*line);
    if (words.size() < 2 || (words[1] != tag && words[1] != "-")) continue;
    if (words[0] == "TOK" && words.size() == 4) {
      std::size_t count = 0;
      std::from_chars(words[3].data(), words[3].data() + words[3].size(), count);
      Result<std::string> text = read_bytes(count);
      if (!text) return text.error();
      if (Result<std::string> end = read_line(); !end) return end.error();
      on_text(*text);
    } else if (words[0] == "END") {
      LineReply reply;
      if (words.size() > 2) reply.reason = words[2];
      for (std::size_t i = 3; i < words.size(); ++i) {
        const std::size_t equals = words[i].find('=');
        if (equals == std::string_view::npos) continue;
        reply.fields.emplace(words[i].substr(0, equals), words[i].substr(equals + 1));
      }
      return reply;
    } else if (words[0] == "ERR") {
      return fail(Errc::bad_request, *line);
    }
  }
}

Result<std::string> LineClient::command(const std::string& line) {
  if (Result<void> sent = send_all(line + "\r\n"); !sent) return sent.error();
  return read_line();
}

}  // namespace helios::apps
