#include "protocol/line_server.hpp"

#include <netinet/tcp.h>
#include <poll.h>
#include <spdlog/spdlog.h>

#include <array>
#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include "runtime/sync_wait.hpp"

namespace helios::protocol {

namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

constexpr std::size_t kReadBytes = 16 * 1024;
constexpr std::size_t kMaxKeyBytes = 256;
constexpr auto kLinger = std::chrono::seconds(1);  // for the peer to read a last line before the socket goes
constexpr auto kAcceptPause =
    std::chrono::milliseconds(100);  // after a failed accept, such as out of descriptors
constexpr runtime::Duration kModelsDeadline = std::chrono::seconds(5);

/// Small frames must leave at once, and a peer that vanished without a word must be found.
void set_options(tcp::socket& socket) {
  error_code ignored;
  socket.set_option(tcp::no_delay(true), ignored);
  socket.set_option(asio::socket_base::keep_alive(true), ignored);
  const int idle_s = 15, interval_s = 5, probes = 4;
  ::setsockopt(socket.native_handle(), IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
  ::setsockopt(socket.native_handle(), IPPROTO_TCP, TCP_KEEPINTVL, &interval_s, sizeof interval_s);
  ::setsockopt(socket.native_handle(), IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
}

Result<std::vector<std::string>> split_keys(std::string_view text) {
  std::vector<std::string> keys;
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    const std::string_view key = text.substr(0, comma);
    if (key.empty() || key.size() > kMaxKeyBytes || key.front() == ' ' || key.back() == ' ') {
      return fail(Errc::bad_request,
                  fmt::format("a key has 1 to {} bytes and no blank at its ends; commas separate keys",
                              kMaxKeyBytes));
    }
    keys.emplace_back(key);
    if (comma == std::string_view::npos) break;
    text.remove_prefix(comma + 1);
  }
  return keys;
}

/// For INFO; none when Router does not answer in time.
runtime::Task<std::vector<std::string>> model_names(actors::RouterAddress router) {
  std::vector<std::string> names;
  actors::GetStats message;
  const Result<actors::Stats> stats = co_await router.ask(std::move(message), kModelsDeadline);
  if (!stats) co_return names;
  for (const actors::ModelStats& model : stats->models) names.push_back(model.name);
  co_return names;
}

/// One socket and its session. The socket is touched on the I/O thread only, the session on its strand only;
/// each side reaches the other by posting. A read is always outstanding but while the session looks at what
/// the last one brought.
class Connection final : public ByteSink, public std::enable_shared_from_this<Connection> {
 public:
  using Gone = std::function<void()>;

  Connection(std::shared_ptr<asio::io_context> io, tcp::socket socket, runtime::Executor& executor,
             const SessionOptions& options, const actors::RouterAddress& router, std::string peer,
             SessionMetrics metrics)
      : io_(std::move(io)),
        socket_(std::move(socket)),
        linger_(*io_),
        session_(std::make_shared<Session>(options, router, executor, *this, std::move(peer), metrics)) {}

  /// `gone` is called on the I/O thread when the socket is closed and every task of the session has ended.
  void start(Gone gone) {
    gone_ = std::move(gone);
    on_session([](Session& session) { session.start(); });
    read();
  }
  void drain() {
    on_session([](Session& session) { session.drain(); });
  }
  void stop() {
    on_session([](Session& session) { session.stop(); });
  }

  void start_write(std::string bytes) override {
    output_ = std::move(bytes);  // stable until written(): the session waits for it
    asio::post(*io_, [self = shared_from_this()] {
      asio::async_write(self->socket_, asio::buffer(self->output_), [self](error_code error, std::size_t) {
        self->on_session([failed = bool{error}](Session& session) {
          if (failed) return session.disconnected();
          session.written();
        });
      });
    });
  }

  void close(bool reset) override {
    asio::post(*io_, [self = shared_from_this(), reset] { self->close_socket(reset); });
  }

  void done() override {
    asio::post(*io_, [self = shared_from_this()] {
      self->session_done_ = true;
      self->finish();
    });
  }

 private:
  template <class Call>
  void on_session(Call call) {
    session_->strand().post([self = shared_from_this(), call] { call(*self->session_); });
  }

  /// None when one is outstanding. A closing connection reads into a place of its own: the session may still
  /// look at the other.
  void read() {
    if (std::exchange(reading_, true)) return;
    const auto place = closing_ ? asio::buffer(discard_) : asio::buffer(input_);
    socket_.async_read_some(place, [self = shared_from_this()](error_code error, std::size_t size) {
      self->reading_ = false;
      self->on_read(error, size);
    });
  }

  void on_read(error_code error, std::size_t size) {
    if (closing_) {  // lingering: what still comes is thrown away
      if (error) return close_now();
      return read();
    }
    if (error == asio::error::eof) {
      input_ended_ = true;
      on_session([](Session& session) { session.input_ended(); });
      return watch_for_reset();
    }
    if (error) return on_session([](Session& session) { session.disconnected(); });
    on_session([size, this](Session& session) {
      if (session.closed()) return;  // close_socket() reads on
      session.received(std::string_view(input_.data(), size));
      asio::post(*io_, [self = shared_from_this()] {
        if (self->socket_.is_open()) self->read();
      });
    });
  }

  /// After a half-close no read can report that the peer is gone. The wait hears of what happens from now on,
  /// the poll of what happened before it.
  void watch_for_reset() {
    socket_.async_wait(tcp::socket::wait_error, [self = shared_from_this()](error_code error) {
      if (!error && !self->closing_) self->on_session([](Session& session) { session.disconnected(); });
    });
    pollfd now{.fd = socket_.native_handle(), .events = 0, .revents = 0};
    if (::poll(&now, 1, 0) > 0 && (now.revents & (POLLERR | POLLHUP)) != 0) {
      on_session([](Session& session) { session.disconnected(); });
    }
  }

  void close_socket(bool reset) {
    if (closing_) return;
    closing_ = true;
    error_code ignored;
    if (reset) {
      socket_.set_option(asio::socket_base::linger(true, 0), ignored);  // RST
      return close_now();
    }
    socket_.shutdown(tcp::socket::shutdown_send, ignored);
    if (input_ended_) return close_now();
    read();
    linger_.expires_after(kLinger);
    linger_.async_wait([self = shared_from_this()](error_code error) {
      if (!error) self->close_now();
    });
  }

  void close_now() {
    if (socket_closed_) return;
    socket_closed_ = true;
    error_code ignored;
    linger_.cancel();
    socket_.close(ignored);
    finish();
  }

  void finish() {
    if (socket_closed_ && session_done_ && gone_) std::exchange(gone_, nullptr)();
  }

  std::shared_ptr<asio::io_context> io_;  // a job of the strand may be the last to let go of this
  tcp::socket socket_;
  asio::steady_timer linger_;
  std::array<char, kReadBytes> input_{};  // owned by whoever has the turn: the read, then the session
  std::array<char, 1024> discard_{};      // what comes while the connection lingers
  std::string output_;
  Gone gone_;
  bool closing_ = false, socket_closed_ = false, session_done_ = false, input_ended_ = false;
  bool reading_ = false;
  std::shared_ptr<Session> session_;  // last, so destroyed first: it uses this sink
};

}  // namespace

struct LineServer::Impl {
  Impl(LineServerOptions server_options, actors::RouterAddress router_address,
       runtime::Executor& server_executor)
      : options(std::move(server_options)), router(std::move(router_address)), executor(server_executor) {}

  void accept();
  void on_accept(error_code error, tcp::socket socket);
  void open(tcp::socket socket, std::string peer);
  void refuse(tcp::socket socket);
  bool wait_until_empty(std::chrono::milliseconds limit);

  LineServerOptions options;
  actors::RouterAddress router;
  runtime::Executor& executor;
  SessionMetrics metrics;
  runtime::Gauge* open_gauge = nullptr;
  runtime::Counter* accepted_counter = nullptr;
  runtime::Counter* refused_counter = nullptr;

  std::shared_ptr<asio::io_context> io = std::make_shared<asio::io_context>(1);
  asio::executor_work_guard<asio::io_context::executor_type> work{io->get_executor()};
  tcp::acceptor acceptor{*io};
  asio::steady_timer pause{*io};
  std::uint16_t port = 0;
  bool draining = false;                                       // I/O thread
  std::uint64_t next_id = 1;                                   // I/O thread
  std::map<std::uint64_t, std::shared_ptr<Connection>> by_id;  // I/O thread
  std::mutex mutex;
  std::condition_variable changed;
  std::size_t open_count = 0;  // under mutex
  std::thread thread;
};

void LineServer::Impl::accept() {
  acceptor.async_accept(
      [this](error_code error, tcp::socket socket) { on_accept(error, std::move(socket)); });
}

void LineServer::Impl::on_accept(error_code error, tcp::socket socket) {
  if (error == asio::error::operation_aborted || !acceptor.is_open()) return;
  if (error) {
    spdlog::warn("line server: cannot accept: {}", error.message());
    pause.expires_after(kAcceptPause);
    return pause.async_wait([this](error_code stopped) {
      if (!stopped && acceptor.is_open()) accept();
    });
  }
  error_code gone;
  const tcp::endpoint endpoint = socket.remote_endpoint(gone);
  if (!gone) {
    if (by_id.size() >= options.connections) {
      refuse(std::move(socket));
    } else {
      open(std::move(socket), fmt::format("{}:{}", endpoint.address().to_string(), endpoint.port()));
    }
  }
  accept();
}

void LineServer::Impl::open(tcp::socket socket, std::string peer) {
  set_options(socket);
  const std::uint64_t id = next_id++;
  auto connection = std::make_shared<Connection>(io, std::move(socket), executor, options.session, router,
                                                 std::move(peer), metrics);
  by_id.emplace(id, connection);
  {
    const std::lock_guard lock(mutex);
    ++open_count;
  }
  if (accepted_counter != nullptr) accepted_counter->add(1);
  if (open_gauge != nullptr) open_gauge->set(static_cast<double>(by_id.size()));
  connection->start([this, id] {
    by_id.erase(id);
    if (open_gauge != nullptr) open_gauge->set(static_cast<double>(by_id.size()));
    const std::lock_guard lock(mutex);
    --open_count;
    changed.notify_all();
  });
}

/// One line, best effort, without waiting for a peer that was never let in.
void LineServer::Impl::refuse(tcp::socket socket) {
  if (refused_counter != nullptr) refused_counter->add(1);
  constexpr std::string_view kLine = "ERR - BUSY retry_ms=1000 too many connections; closing\r\n";
  error_code ignored;
  socket.non_blocking(true, ignored);
  socket.write_some(asio::buffer(kLine), ignored);
  socket.shutdown(tcp::socket::shutdown_send, ignored);
}

bool LineServer::Impl::wait_until_empty(std::chrono::milliseconds limit) {
  std::unique_lock lock(mutex);
  return changed.wait_for(lock, limit, [this] { return open_count == 0; });
}

Result<std::unique_ptr<LineServer>> LineServer::start(LineServerOptions options, actors::RouterAddress router,
                                                      runtime::ActorSystem& system,
                                                      runtime::Registry* metrics) {
  Result<std::vector<std::string>> keys = split_keys(options.key);
  if (!keys) return keys.error();
  options.session.keys = std::move(*keys);
  error_code error;
  const asio::ip::address address =
      asio::ip::make_address(options.host == "localhost" ? "127.0.0.1" : options.host, error);
  if (error)
    return fail(Errc::bad_request,
                fmt::format("'{}' is no address to listen on, such as 127.0.0.1", options.host));
  if (!address.is_loopback() && options.session.keys.empty()) {
    return fail(Errc::bad_request,
                fmt::format("{} can be reached by other machines: set a key (--key), or listen on 127.0.0.1",
                            options.host));
  }
  auto impl = std::make_unique<Impl>(std::move(options), std::move(router), system.executor());
  if (metrics != nullptr) {
    impl->open_gauge = &metrics->gauge("helios_line_connections", {}, "Open line-protocol connections");
    impl->accepted_counter = &metrics->counter("helios_line_connections_total", {}, "Connections accepted");
    impl->refused_counter =
        &metrics->counter("helios_line_connections_refused_total", {}, "Connections over the cap");
    impl->metrics.commands = &metrics->counter("helios_line_commands_total", {}, "Commands read");
    impl->metrics.faults = &metrics->counter("helios_line_faults_total", {}, "Lines that are no command");
    impl->metrics.slow_readers =
        &metrics->counter("helios_line_slow_readers_total", {}, "Connections closed: unread output");
    impl->metrics.foreign =
        &metrics->counter("helios_line_foreign_total", {}, "Connections closed: HTTP or TLS");
  }
  const tcp::endpoint endpoint(address, impl->options.port);
  impl->acceptor.open(endpoint.protocol(), error);
  if (!error) impl->acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) impl->acceptor.bind(endpoint, error);
  if (!error) impl->acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (error) {
    return fail(Errc::io_error, fmt::format("cannot listen on {}:{}: {}", impl->options.host,
                                            impl->options.port, error.message()));
  }
  impl->port = impl->acceptor.local_endpoint(error).port();
  if (impl->options.session.models.empty()) {
    impl->options.session.models = runtime::sync_wait(impl->executor, model_names(impl->router));
  }
  impl->accept();
  impl->thread = std::thread([io = impl->io] { io->run(); });
  return std::unique_ptr<LineServer>(new LineServer(std::move(impl)));
}

LineServer::LineServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

LineServer::~LineServer() {
  stop_accepting();
  if (!impl_->wait_until_empty(impl_->options.flush)) {
    asio::post(*impl_->io, [impl = impl_.get()] {
      for (auto& [id, connection] : impl->by_id) connection->stop();
    });
    // A stopped session waits for nothing but its strand, and its socket for kLinger.
    while (!impl_->wait_until_empty(std::chrono::seconds(10))) {
      spdlog::warn("line server: waiting for {} connections to end", connections());
    }
  }
  impl_->work.reset();  // every socket is closed: the I/O thread runs out of work
  impl_->thread.join();
}

std::uint16_t LineServer::port() const {
  return impl_->port;
}

std::size_t LineServer::connections() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->open_count;
}

void LineServer::stop_accepting() {
  asio::post(*impl_->io, [impl = impl_.get()] {
    if (std::exchange(impl->draining, true)) return;
    error_code ignored;
    impl->pause.cancel();
    impl->acceptor.close(ignored);
    for (auto& [id, connection] : impl->by_id) connection->drain();
  });
}

}  // namespace helios::protocol
