// Real sockets over loopback, real threads, a scripted Router.

#include "protocol/line_server.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>

#include "runtime/thread_executor.hpp"
#include "test/protocol/scripted_router.hpp"
#include "test/protocol/test_client.hpp"

using namespace helios;
using namespace helios::protocol;
using namespace std::chrono_literals;
using actors::FinishReason;
using test::eventually;
using test::TestClient;

namespace {

struct Loopback {
  explicit Loopback(LineServerOptions options = {}) {
    options.port = 0;
    options.flush = 200ms;
    actors::ModelStats model;
    model.name = "smol";
    script->stats.models = {model};
    router = system.spawn<test::ScriptedRouter>({.name = "router"}, script);
    Result<std::unique_ptr<LineServer>> started =
        LineServer::start(std::move(options), router, system, &metrics);
    REQUIRE(started.has_value());
    server = std::move(*started);
  }
  ~Loopback() {
    server.reset();
    system.stop();
  }
  std::shared_ptr<actors::TokenStream> stream(std::size_t index) {
    REQUIRE(eventually([&] { return script->request_count() > index; }));
    return script->request(index).stream;
  }

  std::shared_ptr<test::Script> script = std::make_shared<test::Script>();
  runtime::Registry metrics;
  runtime::ThreadExecutor executor{2};
  runtime::ActorSystem system{executor};
  actors::RouterAddress router;
  std::unique_ptr<LineServer> server;
};

}  // namespace

TEST_CASE("LineServer: a chat over a real socket, ended by half-close", "[protocol]") {
  Loopback world;
  TestClient client(world.server->port());
  REQUIRE(client.connected);
  client.send("GEN t1 22 max_tokens=16\r\nTell me about the sea.\r\nPING x");
  client.half_close();
  test::write_text(world.stream(0), "The sea ");
  world.stream(0)->finish(test::finish_of(FinishReason::length));
  const std::string all = client.read_all();
  CHECK(all.starts_with("INFO {"));
  CHECK(all.find("\"models\":[\"smol\"]") != std::string::npos);
  CHECK(all.find("ACK t1\r\n") < all.find("TOK t1 1 8\r\nThe sea \r\nEND t1 length prompt=31 "));
  CHECK(all.find("END t1 length prompt=31 ") != std::string::npos);
  CHECK(all.find("PONG x\r\n") != std::string::npos);
  CHECK_FALSE(client.was_reset);
  CHECK(world.script->cancels().empty());
  CHECK(eventually([&] { return world.server->connections() == 0; }));
}

TEST_CASE("LineServer: a disconnect in mid-stream cancels at once", "[protocol]") {
  Loopback world;
  SECTION("reset while nothing is being written") {
    TestClient client(world.server->port());
    client.send("GEN t1 \"x\"\n");
    client.read_until("ACK t1");
    client.abort();
    CHECK(eventually([&] { return world.script->cancels() == std::vector<actors::RequestId>{1}; }));
  }
  SECTION("reset after a half-close, when no read is outstanding") {
    TestClient client(world.server->port());
    client.send("GEN t1 \"x\"\n");
    client.half_close();
    client.read_until("ACK t1");
    client.abort();
    CHECK(eventually([&] { return world.script->cancels() == std::vector<actors::RequestId>{1}; }));
  }
  SECTION("closed without a word: the next writes find out") {
    TestClient client(world.server->port());
    client.send("GEN t1 \"x\"\n");
    client.read_until("ACK t1");
    client.close();
    const auto stream = world.stream(0);
    CHECK(eventually([&] {
      test::write_text(stream, "text");
      return world.script->cancels() == std::vector<actors::RequestId>{1};
    }));
  }
  CHECK(eventually([&] { return world.server->connections() == 0; }));
}

TEST_CASE("LineServer: a slow reader is cut off, others stream on", "[protocol]") {
  LineServerOptions options;
  options.session.write_deadline = 300ms;
  options.session.unread_bytes = 128 * 1024;
  options.session.stream_bytes = 64 * 1024;
  Loopback world(options);
  TestClient slow(world.server->port(), 4096), good(world.server->port());
  slow.send("GEN s \"x\"\n");
  const auto slow_stream = world.stream(0);
  good.send("GEN g \"x\"\n");
  const auto good_stream = world.stream(1);
  const std::string text(4000, 'x');
  bool cut = false;
  for (int i = 0; i < 4000 && !cut; ++i) {
    test::write_text(slow_stream, text);
    if (i % 100 == 0) test::write_text(good_stream, "g");
    ::usleep(1000);
    cut = !world.script->cancels().empty();
  }
  CHECK(cut);
  CHECK(world.script->cancels() == std::vector<actors::RequestId>{1});
  good_stream->finish(test::finish_of(FinishReason::stop));
  CHECK(good.read_until("END g").find("END g stop") != std::string::npos);
  CHECK(eventually([&] { return world.server->connections() == 1; }));
}

TEST_CASE("LineServer: HTTP is closed unanswered", "[protocol]") {
  Loopback world;
  TestClient client(world.server->port());
  client.read_until("\n");
  client.send("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
  CHECK(client.read_all().empty());
  CHECK(eventually([&] { return world.server->connections() == 0; }));
  CHECK(world.metrics.prometheus_text().find("helios_line_foreign_total 1") != std::string::npos);
}

TEST_CASE("LineServer: the last ERR reaches a client that is still sending", "[protocol]") {
  LineServerOptions options;
  options.session.parser.payload_bytes = 1000;
  Loopback world(options);
  TestClient client(world.server->port());
  client.send("GEN t1 100000\n" + std::string(100'000, 'x') + "\n");
  const std::string all = client.read_all();
  CHECK(all.ends_with("ERR - TOOLONG a payload may have 1000 bytes, this one has 100000; closing\r\n"));
  CHECK_FALSE(client.was_reset);
}

TEST_CASE("LineServer: bytes one at a time give the same answers", "[protocol]") {
  Loopback world;
  TestClient client(world.server->port());
  for (const char c : std::string("PING a\r\nGEN t1 3\r\nabc\r\nNOPE\nPING b\n"))
    client.send(std::string(1, c));
  world.stream(0)->finish(test::finish_of(FinishReason::stop));
  const std::string all = client.read_until("PONG b");
  CHECK(all.find("PONG a") != std::string::npos);
  CHECK(all.find("ERR - UNKNOWN") != std::string::npos);
}

TEST_CASE("LineServer: the connection cap refuses with a reason", "[protocol]") {
  LineServerOptions options;
  options.connections = 2;
  Loopback world(options);
  TestClient first(world.server->port()), second(world.server->port());
  first.read_until("\n");
  second.read_until("\n");
  TestClient third(world.server->port());
  CHECK(third.read_all() == "ERR - BUSY retry_ms=1000 too many connections; closing\r\n");
  first.close();
  CHECK(eventually([&] { return world.server->connections() == 1; }));
  TestClient fourth(world.server->port());
  CHECK(fourth.read_until("\n").starts_with("INFO "));
}

TEST_CASE("LineServer: refuses to listen where it must not, and says what to do", "[protocol]") {
  Loopback world;
  const auto start = [&](std::string host, std::uint16_t port, std::string key) {
    LineServerOptions options;
    options.host = std::move(host);
    options.port = port;
    options.key = std::move(key);
    return LineServer::start(std::move(options), world.router, world.system);
  };
  auto open = start("0.0.0.0", 0, "");
  REQUIRE_FALSE(open.has_value());
  CHECK(open.error().code == Errc::bad_request);
  CHECK(open.error().message.find("key") != std::string::npos);
  CHECK(start("0.0.0.0", 0, "secret").has_value());
  CHECK(start("nowhere at all", 0, "").error().code == Errc::bad_request);
  CHECK(start("127.0.0.1", 0, "a,,b").error().code == Errc::bad_request);
  CHECK(start("127.0.0.1", world.server->port(), "").error().code == Errc::io_error);
}

TEST_CASE("LineServer: draining lets a stream end and closes; stopping cancels what is left", "[protocol]") {
  Loopback world;
  TestClient idle(world.server->port()), busy(world.server->port()), stuck(world.server->port());
  idle.read_until("\n");
  busy.send("GEN b \"x\"\n");
  busy.read_until("ACK b");
  stuck.send("GEN s \"x\"\n");
  stuck.read_until("ACK s");
  world.server->stop_accepting();
  CHECK(idle.read_all().empty());
  CHECK(eventually([&] { return !TestClient(world.server->port()).connected; }));
  busy.send("GEN c \"x\"\n");
  CHECK(busy.read_until("DRAINING").starts_with("ERR c DRAINING "));
  world.stream(0)->finish(test::finish_of(FinishReason::stop));
  CHECK(busy.read_all().starts_with("END b stop "));
  world.server.reset();  // returns although "s" never ends by itself
  CHECK(eventually([&] { return world.script->cancels() == std::vector<actors::RequestId>{2}; }));
  CHECK(stuck.read_all().empty());
}

TEST_CASE("LineServer: a storm of connections that come and go leaves nothing", "[protocol]") {
  Loopback world;
  for (int round = 0; round < 60; ++round) {
    TestClient client(world.server->port());
    client.send(round % 3 == 0 ? "GEN a \"x\"\n" : "PING\nGEN b 5\nhel");
    if (round % 4 == 1) client.read_until("\n");
    if (round % 2 == 0) client.abort();
  }
  // A bare FIN is a half-close: only what the server then sends finds out that nobody is there.
  CHECK(eventually([&] {
    for (std::size_t i = 0; i < world.script->request_count(); ++i) {
      test::write_text(world.script->request(i).stream, "text");
    }
    return world.server->connections() == 0;
  }));
  std::vector<actors::RequestId> cancels = world.script->cancels();
  std::sort(cancels.begin(), cancels.end());
  CHECK(std::adjacent_find(cancels.begin(), cancels.end()) == cancels.end());
  CHECK(cancels.size() == world.script->request_count());
}
