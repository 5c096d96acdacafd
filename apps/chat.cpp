// helios chat: a conversation on the terminal, with the model in this process.

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <iostream>
#include <memory>
#include <string>

#include "apps/commands.hpp"
#include "apps/engine.hpp"
#include "apps/logging.hpp"
#include "apps/sampling_options.hpp"

namespace helios::apps {

namespace {

struct ChatOptions {
  EngineOptions engine;
  SamplingOptions sampling;
  std::string model, system;
};

constexpr const char* kHelp =
    "/exit E   run layers 1..E from the next answer on (loads what is missing)\n"
    "/reset    forget the conversation\n"
    "/stats    layers, memory and the depth of the tokens so far\n"
    "/quit     leave\n";

void print_stats(actors::Server& server) {
  Result<actors::Stats> stats = server.stats(std::chrono::seconds(10));
  if (!stats) return;
  for (const actors::ModelStats& m : stats->models) {
    std::printf("%s%s: depth %d, layers 1-%d of %d resident, %.1f MiB of weights\n", m.name.c_str(),
                m.synthetic ? " (synthetic)" : "", m.depth, m.resident, m.layers,
                static_cast<double>(m.weight_bytes) / 1048576.0);
    for (const auto& [depth, tokens] : m.exit_histogram) {
      std::printf("  left at layer %d: %llu tokens\n", depth, static_cast<unsigned long long>(tokens));
    }
  }
}

int run_chat(ChatOptions options) {
  start_logging(options.engine.log_format, options.engine.log_level);
  options.engine.models = {options.model};
  Result<std::unique_ptr<Engine>> engine = Engine::start(options.engine);
  if (!engine) {
    std::fprintf(stderr, "helios chat: %s\n", engine.error().message.c_str());
    return 1;
  }
  actors::Server& server = (*engine)->server();
  if (auto ready = server.wait_ready(std::chrono::minutes(10)); !ready) {
    std::fprintf(stderr, "helios chat: %s\n", ready.error().message.c_str());
    return 1;
  }
  const bool terminal = ::isatty(STDIN_FILENO) == 1;
  if (terminal) std::printf("Type a message; /help lists the commands.\n");
  actors::ChatTurns turns;
  if (!options.system.empty()) turns.push_back({"system", options.system});
  const std::size_t first_turn = turns.size();
  std::string line;
  while ((terminal && (std::printf("> "), std::fflush(stdout))), std::getline(std::cin, line)) {
    if (line.empty()) continue;
    if (line == "/quit") break;
    if (line == "/help") {
      std::printf("%s", kHelp);
    } else if (line == "/reset") {
      turns.resize(first_turn);
    } else if (line == "/stats") {
      print_stats(server);
    } else if (line.starts_with("/exit ")) {
      const int layer = std::atoi(line.c_str() + 6);
      if (auto depth = server.set_depth("", layer, std::chrono::minutes(5)); depth) {
        std::printf("layers 1-%d are resident\n", depth->resident);
      } else {
        std::printf("%s\n", depth.error().message.c_str());
      }
    } else if (line.starts_with('/')) {
      std::printf("unknown command %s; /help lists them\n", line.c_str());
    } else {
      turns.push_back({"user", line});
      actors::GenerateRequest request;
      request.prompt = turns;
      request.sampling = options.sampling.to_sampling();
      std::string text;
      Result<Answer> answer = run_request(server, std::move(request), [&](const actors::TextChunk& chunk) {
        text += chunk.text;
        std::fwrite(chunk.text.data(), 1, chunk.text.size(), stdout);
        std::fflush(stdout);
      });
      if (!answer) {
        std::printf("%s\n", answer.error().message.c_str());
        turns.pop_back();
        continue;
      }
      const actors::Finish& finish = answer->finish;
      turns.push_back({"assistant", text});
      std::printf("\n[%d tokens, mean depth %.1f, first after %.0f ms, %.1f tokens/s]\n",
                  finish.usage.completion_tokens, finish.usage.mean_depth, finish.ttft_ms,
                  finish.tokens_per_s);
    }
  }
  engine->reset();
  stop_logging();
  return 0;
}

}  // namespace

void add_chat(CLI::App& program, Run& run) {
  auto options = std::make_shared<ChatOptions>();
  CLI::App* command = program.add_subcommand("chat", "Talk to a model on the terminal");
  command->add_option("--model", options->model, kModelHelp)->required();
  command->add_option("--system", options->system, "System message (default: the template's)");
  add_sampling_options(*command, options->sampling);
  add_engine_options(*command, options->engine);
  command->callback([options, &run] { run = [options] { return run_chat(*options); }; });
}

}  // namespace helios::apps
