// helios serve: models behind the line protocol. First SIGINT or SIGTERM drains, the second exits at once.

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <thread>

#include "apps/commands.hpp"
#include "apps/engine.hpp"
#include "apps/logging.hpp"
#include "apps/signals.hpp"
#include "protocol/line_server.hpp"
#include "protocol/metrics_server.hpp"

namespace helios::apps {

namespace {

struct ServeOptions {
  EngineOptions engine;
  protocol::LineServerOptions line;
  int metrics_port = -1;  // -1: none
  int drain_seconds = 30;
};

int run_serve(ServeOptions options) {
  const auto failed = [](const Error& error) {
    std::fprintf(stderr, "helios serve: %s\n", error.message.c_str());
    stop_logging();
    return 1;
  };
  const StopSignals signals;  // before any thread
  start_logging(options.engine.log_format, options.engine.log_level);
  Result<std::unique_ptr<Engine>> started = Engine::start(options.engine);
  if (!started) return failed(started.error());
  Engine& engine = **started;
  if (auto ready = engine.server().wait_ready(std::chrono::minutes(10)); !ready) return failed(ready.error());

  Result<std::unique_ptr<protocol::LineServer>> line =
      protocol::LineServer::start(options.line, engine.server().router(), engine.system(), &engine.metrics());
  if (!line) return failed(line.error());
  std::string ready_line = fmt::format("READY line={}:{}", options.line.host, (*line)->port());
  std::unique_ptr<protocol::MetricsServer> metrics;
  if (options.metrics_port >= 0) {
    protocol::MetricsServerOptions metrics_options;
    metrics_options.host = "127.0.0.1";
    metrics_options.port = static_cast<std::uint16_t>(options.metrics_port);
    Result<std::unique_ptr<protocol::MetricsServer>> listening = protocol::MetricsServer::start(
        metrics_options, engine.metrics(), engine.server().router(), engine.system());
    if (!listening) return failed(listening.error());
    metrics = std::move(*listening);
    ready_line += fmt::format(" metrics=127.0.0.1:{}", metrics->port());
  }
  for (const std::string& name : synthetic_models(engine.server())) ready_line += " synthetic=" + name;
  std::printf("%s\n", ready_line.c_str());
  std::fflush(stdout);

  signals.wait();
  spdlog::info("draining for up to {} s; a second signal exits at once", options.drain_seconds);
  std::thread([signals] {
    signals.wait();
    ::_exit(130);
  }).detach();  // the one detached thread: it outlives nothing but the process
  (*line)->stop_accepting();
  if (auto drained = engine.server().drain(std::chrono::seconds(options.drain_seconds)); drained) {
    spdlog::info("drained: {} requests ended, {} cancelled", drained->finished, drained->cancelled);
  }
  metrics.reset();
  line->reset();
  started->reset();
  stop_logging();
  return 0;
}

}  // namespace

void add_serve(CLI::App& program, Run& run) {
  auto options = std::make_shared<ServeOptions>();
  options->engine.log_level = "info";
  options->engine.adaptive = true;
  options->line.port = 7070;
  CLI::App* command =
      program.add_subcommand("serve", "Serve models over the line protocol (docs/PROTOCOL.md)");
  command
      ->add_option("--model", options->engine.models,
                   fmt::format("{} (repeatable; the first is the default)", kModelHelp))
      ->required();
  command->add_option("--host", options->line.host, "Address to listen on; other than loopback needs --key");
  command->add_option("--port", options->line.port, "Line protocol port (0: any free one)");
  command->add_option("--key", options->line.key, "Clients must AUTH with this key")->envname("HELIOS_KEY");
  command
      ->add_option("--metrics-port", options->metrics_port,
                   "Prometheus metrics and health on this port (0: any free one)")
      ->check(CLI::Range(0, 65535));
  command
      ->add_option("--drain-seconds", options->drain_seconds, "Time for running requests to end at shutdown")
      ->check(CLI::NonNegativeNumber);
  add_engine_options(*command, options->engine);
  command->callback([options, &run] { run = [options] { return run_serve(*options); }; });
}

}  // namespace helios::apps
