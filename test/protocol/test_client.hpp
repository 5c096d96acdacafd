#pragma once
// A blocking TCP client for loopback tests.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace helios::test {

class TestClient {
 public:
  explicit TestClient(std::uint16_t port, int receive_buffer = 0) : fd_(::socket(AF_INET, SOCK_STREAM, 0)) {
    if (receive_buffer > 0) ::setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected = ::connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  }
  ~TestClient() { close(); }
  TestClient(const TestClient&) = delete;
  TestClient& operator=(const TestClient&) = delete;

  void send(std::string_view bytes) { (void)!::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL); }
  void half_close() { ::shutdown(fd_, SHUT_WR); }
  void close() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }
  /// RST.
  void abort() {
    const linger now{.l_onoff = 1, .l_linger = 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    close();
  }
  /// Reads until what came ends with or contains `mark`, the peer closes, or 5 s passed; returns and forgets
  /// it.
  std::string read_until(std::string_view mark) {
    std::string bytes;
    while (bytes.find(mark) == std::string::npos && read_some(bytes)) {
    }
    return bytes;
  }
  std::string read_all() {
    std::string bytes;
    while (read_some(bytes)) {
    }
    return bytes;
  }

  bool connected = false;
  bool was_reset = false;

 private:
  bool read_some(std::string& bytes) {
    pollfd ready{.fd = fd_, .events = POLLIN, .revents = 0};
    if (::poll(&ready, 1, 5000) <= 0) return false;
    char chunk[65536];
    const ssize_t size = ::recv(fd_, chunk, sizeof chunk, 0);
    was_reset = was_reset || size < 0;
    if (size <= 0) return false;
    bytes.append(chunk, static_cast<std::size_t>(size));
    return true;
  }
  int fd_;
};

/// Polls for up to 5 s: for facts that other threads bring about.
template <class Condition>
bool eventually(Condition condition) {
  for (int i = 0; i < 5000; ++i) {
    if (condition()) return true;
    ::usleep(1000);
  }
  return false;
}

}  // namespace helios::test
