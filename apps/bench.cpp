// helios bench: throughput and latency, closed loop by number of streams or open loop by arrival rate.

#include <spdlog/fmt/fmt.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <boost/json.hpp>
#include <cstdio>
#include <memory>
#include <thread>

#include "apps/bench_report.hpp"
#include "apps/bench_target.hpp"
#include "apps/bench_workload.hpp"
#include "apps/commands.hpp"
#include "apps/logging.hpp"
#include "apps/progress_bar.hpp"

namespace helios::apps {

namespace {

constexpr int kMaxInFlight = 512;  // client threads

struct BenchOptions {
  EngineOptions engine;
  std::string model, connect;
  std::vector<int> streams{1, 4, 16};
  int prompt_tokens = 128, output_tokens = 64;
  int requests = 0;  // per run; 0: one per stream
  double rate = 0;   // requests a second; 0: closed loop
  std::uint64_t seed = 0;
  bool warm_up = true, as_json = false;
};

/// `streams` clients that each send their next request when the last one ended.
std::vector<RequestRecord> closed_loop(BenchTarget& target, const BenchOptions& options, int streams) {
  const int total = options.requests > 0 ? options.requests : streams;
  std::vector<RequestRecord> records(static_cast<std::size_t>(total));
  std::atomic<int> next{0};
  std::vector<std::jthread> clients;
  for (int s = 0; s < std::min(streams, total); ++s) {
    clients.emplace_back([&] {
      for (int i; (i = next.fetch_add(1)) < total;) {
        records[static_cast<std::size_t>(i)] =
            target.run({bench_prompt(options.prompt_tokens, options.seed, i), options.output_tokens});
      }
    });
  }
  return clients.clear(), records;  // joins
}

/// Requests sent at Poisson times, whatever became of the earlier ones.
std::vector<RequestRecord> open_loop(BenchTarget& target, const BenchOptions& options) {
  std::vector<RequestRecord> records(static_cast<std::size_t>(options.requests));
  const std::vector<double> arrivals = poisson_arrivals(options.rate, options.requests, options.seed);
  std::vector<std::jthread> clients;
  const BenchTime start = std::chrono::steady_clock::now();
  ProgressBar progress("requests sent", records.size());
  for (int i = 0; i < options.requests; ++i) {
    const auto index = static_cast<std::size_t>(i);
    std::this_thread::sleep_until(start + std::chrono::duration_cast<BenchTime::duration>(
                                              std::chrono::duration<double>(arrivals[index])));
    clients.emplace_back([&, i, index] {
      records[index] =
          target.run({bench_prompt(options.prompt_tokens, options.seed, i), options.output_tokens});
    });
    progress.advance();
  }
  return clients.clear(), records;
}

void print(const boost::json::object& report, bool as_json) {
  std::printf("%s", as_json ? (boost::json::serialize(report) + "\n").c_str() : bench_table(report).c_str());
  std::fflush(stdout);
}

int run_bench(BenchOptions options) {
  start_logging(options.engine.log_format, options.engine.log_level);
  options.engine.models = {options.model};
  for (const int streams : options.streams)
    options.engine.max_running = std::max(options.engine.max_running, streams);
  const int exit_layer = options.engine.exit_layer;
  Result<std::unique_ptr<BenchTarget>> target = options.connect.empty()
                                                    ? make_local_target(options.engine)
                                                    : make_remote_target(options.connect, exit_layer);
  if (!target) {
    std::fprintf(stderr, "helios bench: %s\n", target.error().message.c_str());
    stop_logging();
    return 1;
  }
  bool clean = true;
  const bool synthetic = (*target)->synthetic();
  if (options.warm_up) (*target)->run({bench_prompt(16, options.seed, -1), 8});
  if (options.rate > 0) {
    boost::json::object report = bench_report(open_loop(**target, options), 0, false);
    report["rate"] = options.rate;
    if (synthetic) report["synthetic"] = true;
    clean = report.at("errors").as_int64() == 0;
    print(report, options.as_json);
  } else {
    for (const int streams : options.streams) {
      boost::json::object report = bench_report(closed_loop(**target, options, streams), streams, true);
      if (synthetic) report["synthetic"] = true;
      clean = clean && report.at("errors").as_int64() == 0;
      print(report, options.as_json);
    }
  }
  target->reset();
  stop_logging();
  return clean ? 0 : 1;
}

}  // namespace

void add_bench(CLI::App& program, Run& run) {
  auto options = std::make_shared<BenchOptions>();
  CLI::App* command = program.add_subcommand("bench", "Measure throughput and latency");
  auto* model =
      command->add_option("--model", options->model, fmt::format("{}, run in this process", kModelHelp));
  auto* connect =
      command->add_option("--connect", options->connect, "HOST:PORT of a running server's line protocol");
  model->excludes(connect);
  command->add_option("--streams", options->streams, "Closed loop: streams at once, one run each")
      ->delimiter(',')
      ->check(CLI::Range(1, kMaxInFlight));
  command->add_option("--prompt-tokens", options->prompt_tokens, "Tokens of each prompt, about")
      ->check(CLI::PositiveNumber);
  command->add_option("--output-tokens", options->output_tokens, "Tokens of each answer")
      ->check(CLI::PositiveNumber);
  command->add_option("--requests", options->requests, "Requests of a run (default: one per stream)")
      ->check(CLI::Range(1, 100000));
  command->add_option("--rate", options->rate, "Open loop: Poisson arrivals a second; needs --requests")
      ->check(CLI::PositiveNumber);
  command->add_option("--seed", options->seed, "Seed of prompts and arrivals");
  command->add_flag("!--no-warm-up", options->warm_up, "Measure the first request too");
  command->add_flag("--json", options->as_json, "One JSON line a run");
  add_engine_options(*command, options->engine);
  command->callback([options, model, connect, &run] {
    if (model->count() + connect->count() == 0) throw CLI::RequiredError("--model or --connect");
    if (options->rate > 0 && (options->requests == 0 || options->requests > kMaxInFlight)) {
      throw CLI::ValidationError("--rate", fmt::format("needs --requests from 1 to {}", kMaxInFlight));
    }
    run = [options] { return run_bench(*options); };
  });
}

}  // namespace helios::apps
