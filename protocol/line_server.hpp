#pragma once
// The TCP door: accepts connections and gives each a Session.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "actors/messages.hpp"
#include "protocol/session.hpp"
#include "runtime/actor_system.hpp"
#include "runtime/metrics.hpp"

namespace helios::protocol {

struct LineServerOptions {
  std::string host = "127.0.0.1";         // a numeric address; other than loopback is refused without a key
  std::uint16_t port = 7070;              // 0 = any free one
  std::string key;                        // "" = no AUTH; several keys may be separated by commas
  std::size_t connections = 256;          // at once; one more is told BUSY and closed
  std::chrono::milliseconds flush{2000};  // at destruction: time for queued output to reach its readers
  SessionOptions session;                 // `keys` is filled from `key`
};

/// Listens on one address with one I/O thread; sessions run on strands of the actor system's executor.
/// Destroy it before the ActorSystem stops: the destructor cancels what still runs and joins all sessions.
class LineServer {
 public:
  /// Errors: bad_request (host is no address, or not loopback without a key), io_error (the port is taken).
  static Result<std::unique_ptr<LineServer>> start(LineServerOptions options, actors::RouterAddress router,
                                                   runtime::ActorSystem& system,
                                                   runtime::Registry* metrics = nullptr);
  ~LineServer();
  LineServer(const LineServer&) = delete;
  LineServer& operator=(const LineServer&) = delete;

  std::uint16_t port() const;
  std::size_t connections() const;
  /// Closes the listening socket and tells open sessions to refuse new GEN and LOAD with DRAINING; running
  /// streams go on, and a session without one is closed.
  void stop_accepting();

 private:
  struct Impl;
  explicit LineServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace helios::protocol
