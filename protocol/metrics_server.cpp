#include "protocol/metrics_server.hpp"

#include <spdlog/spdlog.h>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>
#include <thread>
#include <utility>

#include "runtime/reply.hpp"

namespace helios::protocol {

namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using asio::ip::tcp;
using boost::system::error_code;

constexpr std::uint32_t kMaxHeaderBytes = 4096;
constexpr auto kPollInterval = std::chrono::milliseconds(2);  // for Router's answer to a probe
constexpr auto kAcceptPause = std::chrono::milliseconds(100);
constexpr std::string_view kText = "text/plain; charset=utf-8";
constexpr std::string_view kPrometheus = "text/plain; version=0.0.4; charset=utf-8";

struct Service {
  MetricsServerOptions options;
  runtime::Registry& metrics;
  actors::RouterAddress router;
  std::size_t open = 0;  // connections
};

/// The reason why the server is not ready; empty when it is.
std::string not_ready(const actors::Stats& stats) {
  if (stats.draining) return "draining";
  if (stats.models.empty()) return "no model";
  for (const actors::ModelStats& model : stats.models) {
    if (!model.error.empty()) return model.name + ": " + model.error;
    if (model.resident == 0) return model.name + ": loading";
  }
  return {};
}

using Answer = runtime::Reply<actors::Stats>::State;

/// One request, one answer, closed. All on the I/O thread.
class Exchange final : public std::enable_shared_from_this<Exchange> {
 public:
  Exchange(tcp::socket socket, Service& service)
      : stream_(std::move(socket)), poll_(stream_.get_executor()), service_(service) {
    ++service_.open;
    parser_.header_limit(kMaxHeaderBytes);
    parser_.body_limit(0);
  }
  ~Exchange() { --service_.open; }

  void start() {
    stream_.expires_after(service_.options.request_deadline);
    http::async_read(stream_, buffer_, parser_, [self = shared_from_this()](error_code error, std::size_t) {
      if (error == http::error::header_limit)
        return self->answer(http::status::request_header_fields_too_large, "");
      if (error == http::error::body_limit) return self->answer(http::status::payload_too_large, "");
      // A malformed or unfinished request gets no answer.
      if (!error) self->route();
    });
  }

 private:
  void route() {
    const auto& request = parser_.get();
    // A proxy could read what follows such a request as another one.
    if (request.find(http::field::transfer_encoding) != request.end())
      return answer(http::status::bad_request, "");
    if (request.method() != http::verb::get && request.method() != http::verb::head) {
      return answer(http::status::method_not_allowed, "GET only\n");
    }
    const std::string_view target(request.target().data(), request.target().size());
    const std::string_view path = target.substr(0, target.find('?'));
    if (path == "/metrics") return answer(http::status::ok, service_.metrics.prometheus_text(), kPrometheus);
    if (path == "/livez" || path == "/readyz") return probe(path == "/readyz");
    answer(http::status::not_found, "there are /metrics, /livez and /readyz\n");
  }

  void probe(bool readiness) {
    answer_ = Answer::create();
    if (const Result<void> told =
            service_.router.tell(actors::GetStats{runtime::Reply<actors::Stats>(answer_)});
        !told) {
      return answer(http::status::service_unavailable, told.error().message + "\n");
    }
    wait_for_stats(readiness, std::chrono::steady_clock::now() + service_.options.probe_deadline);
  }

  void wait_for_stats(bool readiness, std::chrono::steady_clock::time_point deadline) {
    if (const std::optional<Result<actors::Stats>> stats = answer_->try_take()) {
      if (!*stats) return answer(http::status::service_unavailable, stats->error().message + "\n");
      const std::string reason = readiness ? not_ready(**stats) : std::string();
      if (!reason.empty()) return answer(http::status::service_unavailable, reason + "\n");
      return answer(http::status::ok, readiness ? "ready\n" : "alive\n");
    }
    if (std::chrono::steady_clock::now() >= deadline) {
      return answer(http::status::service_unavailable, "the router does not answer\n");
    }
    poll_.expires_after(kPollInterval);
    poll_.async_wait([self = shared_from_this(), readiness, deadline](error_code error) {
      if (!error) self->wait_for_stats(readiness, deadline);
    });
  }

  void answer(http::status status, std::string body, std::string_view type = kText) {
    response_.result(status);
    response_.version(11);
    response_.keep_alive(false);
    response_.set(http::field::content_type, beast::string_view(type.data(), type.size()));
    response_.set(http::field::cache_control, "no-store");
    const bool head = parser_.is_header_done() && parser_.get().method() == http::verb::head;
    response_.body() = std::move(body);
    response_.prepare_payload();
    if (head) response_.body().clear();  // the length stays
    stream_.expires_after(service_.options.request_deadline);
    http::async_write(stream_, response_, [self = shared_from_this()](error_code, std::size_t) {
      error_code ignored;
      self->stream_.socket().shutdown(tcp::socket::shutdown_send, ignored);
    });
  }

  beast::tcp_stream stream_;
  asio::steady_timer poll_;
  beast::flat_buffer buffer_{kMaxHeaderBytes * 2};
  http::request_parser<http::empty_body> parser_;
  http::response<http::string_body> response_;
  std::shared_ptr<Answer> answer_;  // of a probe
  Service& service_;
};

}  // namespace

struct MetricsServer::Impl {
  Impl(MetricsServerOptions options, runtime::Registry& metrics, actors::RouterAddress router)
      : service{std::move(options), metrics, std::move(router)} {}

  void accept() {
    acceptor.async_accept([this](error_code error, tcp::socket socket) {
      if (!acceptor.is_open()) return;
      if (error) {
        pause.expires_after(kAcceptPause);
        return pause.async_wait([this](error_code stopped) {
          if (!stopped && acceptor.is_open()) accept();
        });
      }
      if (service.open < service.options.connections)
        std::make_shared<Exchange>(std::move(socket), service)->start();
      accept();
    });
  }

  Service service;  // outlives the io_context, whose handlers own exchanges
  asio::io_context io{1};
  tcp::acceptor acceptor{io};
  asio::steady_timer pause{io};
  std::uint16_t port = 0;
  std::thread thread;
};

Result<std::unique_ptr<MetricsServer>> MetricsServer::start(MetricsServerOptions options,
                                                            runtime::Registry& metrics,
                                                            actors::RouterAddress router,
                                                            runtime::ActorSystem&) {
  error_code error;
  const asio::ip::address address =
      asio::ip::make_address(options.host == "localhost" ? "127.0.0.1" : options.host, error);
  if (error) {
    return fail(Errc::bad_request,
                fmt::format("'{}' is no address to listen on, such as 127.0.0.1", options.host));
  }
  auto impl = std::make_unique<Impl>(std::move(options), metrics, std::move(router));
  const tcp::endpoint endpoint(address, impl->service.options.port);
  impl->acceptor.open(endpoint.protocol(), error);
  if (!error) impl->acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) impl->acceptor.bind(endpoint, error);
  if (!error) impl->acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (error) {
    return fail(Errc::io_error, fmt::format("cannot listen on {}:{}: {}", impl->service.options.host,
                                            impl->service.options.port, error.message()));
  }
  impl->port = impl->acceptor.local_endpoint(error).port();
  impl->accept();
  impl->thread = std::thread([&io = impl->io] { io.run(); });
  return std::unique_ptr<MetricsServer>(new MetricsServer(std::move(impl)));
}

MetricsServer::MetricsServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

MetricsServer::~MetricsServer() {
  impl_->io.stop();
  impl_->thread.join();
}

std::uint16_t MetricsServer::port() const {
  return impl_->port;
}

}  // namespace helios::protocol
