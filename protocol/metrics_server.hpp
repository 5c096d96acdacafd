#pragma once
// A small HTTP listener for machines that watch this one: GET /metrics, /livez, /readyz.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "actors/messages.hpp"
#include "runtime/actor_system.hpp"
#include "runtime/metrics.hpp"

namespace helios::protocol {

struct MetricsServerOptions {
  std::string host =
      "127.0.0.1";         // a numeric address; the text names models and loads: keep it on a trusted network
  std::uint16_t port = 0;  // 0 = any free one
  std::size_t connections = 32;                        // at once; more are closed
  std::chrono::milliseconds request_deadline{10'000};  // to send a whole request, and to read a whole answer
  std::chrono::milliseconds probe_deadline{2'000};     // for Router to answer /livez, /readyz
};

/// /metrics: Prometheus text. /livez: 200 when Router answers in time (the actors turn), else 503. /readyz:
/// 200 when also every model serves and the server is not draining, else 503 with the reason in the body.
/// Nothing wakes or loads a model.
class MetricsServer {
 public:
  /// `metrics` must outlive the server. Errors: bad_request (host is no address), io_error (the port is
  /// taken).
  static Result<std::unique_ptr<MetricsServer>> start(MetricsServerOptions options,
                                                      runtime::Registry& metrics,
                                                      actors::RouterAddress router,
                                                      runtime::ActorSystem& system);
  ~MetricsServer();
  MetricsServer(const MetricsServer&) = delete;
  MetricsServer& operator=(const MetricsServer&) = delete;

  std::uint16_t port() const;

 private:
  struct Impl;
  explicit MetricsServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace helios::protocol
