#include "protocol/metrics_server.hpp"

#include <catch2/catch_test_macros.hpp>

#include "runtime/thread_executor.hpp"
#include "test/protocol/scripted_router.hpp"
#include "test/protocol/test_client.hpp"

using namespace helios;
using namespace helios::protocol;
using test::TestClient;

TEST_CASE("MetricsServer: metrics, liveness and readiness over HTTP", "[protocol]") {
  auto script = std::make_shared<test::Script>();
  runtime::Registry registry;
  registry.counter("helios_things_total", {}, "Things").add(3);
  runtime::ThreadExecutor executor(1);
  runtime::ActorSystem system(executor);
  const actors::RouterAddress router = system.spawn<test::ScriptedRouter>({.name = "router"}, script);
  Result<std::unique_ptr<MetricsServer>> server = MetricsServer::start({}, registry, router, system);
  REQUIRE(server.has_value());
  const auto ask = [&](std::string request) {
    TestClient client((*server)->port());
    client.send(request);
    return client.read_all();
  };
  const auto get = [&](const std::string& path) {
    return ask("GET " + path + " HTTP/1.1\r\nHost: x\r\n\r\n");
  };
  const auto set_stats = [&](actors::Stats stats) {
    const std::lock_guard lock(script->mutex);
    script->stats = std::move(stats);
  };

  const std::string text = get("/metrics");
  CHECK(text.starts_with("HTTP/1.1 200 OK\r\n"));
  CHECK(text.find("version=0.0.4") != std::string::npos);
  CHECK(text.find("helios_things_total 3") != std::string::npos);
  CHECK(get("/livez").starts_with("HTTP/1.1 200"));
  CHECK(get("/livez?x=1").find("alive") != std::string::npos);

  CHECK(get("/readyz").find("no model") != std::string::npos);
  actors::Stats stats;
  actors::ModelStats model;
  model.name = "smol";
  stats.models = {model};
  set_stats(stats);
  CHECK(get("/readyz").find("smol: loading") != std::string::npos);
  stats.models[0].resident = 30;
  set_stats(stats);
  CHECK(get("/readyz").starts_with("HTTP/1.1 200"));
  stats.models[0].error = "device fault";
  set_stats(stats);
  CHECK(get("/readyz").find("smol: device fault") != std::string::npos);
  stats.models[0].error.clear();
  stats.draining = true;
  set_stats(stats);
  CHECK(get("/readyz").starts_with("HTTP/1.1 503"));
  CHECK(get("/readyz").ends_with("draining\n"));

  CHECK(get("/nothing").starts_with("HTTP/1.1 404"));
  CHECK(ask("POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n").starts_with("HTTP/1.1 405"));
  CHECK(ask("GET /metrics HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\n").find("200 OK") ==
        std::string::npos);
  CHECK(
      ask("GET /metrics HTTP/1.1\r\nX: " + std::string(5000, 'x') + "\r\n\r\n").starts_with("HTTP/1.1 431"));
  CHECK(ask("HEAD /livez HTTP/1.1\r\nHost: x\r\n\r\n").ends_with("\r\n\r\n"));
  CHECK(ask("GEN t1 \"not HTTP\"\n").find("200") == std::string::npos);

  system.stop();
  CHECK(get("/livez").starts_with("HTTP/1.1 503"));  // the actors are gone
  server->reset();
}

TEST_CASE("MetricsServer: a bad address or a taken port is an error", "[protocol]") {
  runtime::Registry registry;
  runtime::ThreadExecutor executor(1);
  runtime::ActorSystem system(executor);
  CHECK(MetricsServer::start({.host = "nowhere"}, registry, {}, system).error().code == Errc::bad_request);
  auto first = MetricsServer::start({}, registry, {}, system);
  REQUIRE(first.has_value());
  CHECK(MetricsServer::start({.port = (*first)->port()}, registry, {}, system).error().code ==
        Errc::io_error);
}
