// helios generate: answers prompts and prints them, one JSON line a prompt with --json.

#include <spdlog/fmt/fmt.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <boost/json.hpp>
#include <cstdio>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "apps/commands.hpp"
#include "apps/engine.hpp"
#include "apps/logging.hpp"
#include "apps/progress_bar.hpp"
#include "apps/prompts_file.hpp"
#include "apps/sampling_options.hpp"

namespace helios::apps {

namespace json = boost::json;

namespace {

struct GenerateOptions {
  EngineOptions engine;
  SamplingOptions sampling;
  std::string model, prompt, prompts_file;
  bool raw = false, as_json = false;
  int streams = 16;
};

/// What is the same for all answers of a run.
struct RunFacts {
  double load_ms = 0;  // until the first layers stood, files included
  bool synthetic = false;
};

json::object to_json(const Prompt& prompt, const std::string& text, const Answer& answer,
                     const RunFacts& facts) {
  const actors::Finish& finish = answer.finish;
  json::object histogram;
  for (const auto& [depth, tokens] : finish.usage.exit_histogram) histogram[std::to_string(depth)] = tokens;
  json::object out{
      {"id", prompt.id},
      {"text", text},
      {"prompt_ids", json::array(answer.accepted.prompt_ids.begin(), answer.accepted.prompt_ids.end())},
      {"token_ids", json::array(finish.token_ids.begin(), finish.token_ids.end())},
      {"finish_reason", actors::to_string(finish.reason)},
      {"usage",
       {{"prompt_tokens", finish.usage.prompt_tokens},
        {"completion_tokens", finish.usage.completion_tokens},
        {"mean_depth", finish.usage.mean_depth},
        {"exit_histogram", std::move(histogram)}}},
      {"timing",
       {{"ttft_ms", finish.ttft_ms}, {"tokens_per_s", finish.tokens_per_s}, {"load_ms", facts.load_ms}}}};
  if (facts.synthetic) out["synthetic"] = true;
  return out;
}

actors::GenerateRequest make_request(const GenerateOptions& options, const Prompt& prompt) {
  actors::GenerateRequest request;
  request.prompt = prompt.text;
  request.raw = prompt.raw;
  request.return_prompt_ids = options.as_json;
  request.sampling = options.sampling.to_sampling();
  request.label = prompt.id;
  return request;
}

int report_failure(const Prompt& prompt, const Error& error) {
  std::fprintf(stderr, "helios generate: prompt %s: %s\n", prompt.id.c_str(), error.message.c_str());
  return 1;
}

/// Streams the answer to stdout.
int answer_one(Engine& engine, const GenerateOptions& options, const Prompt& prompt) {
  const auto on_chunk = [](const actors::TextChunk& chunk) {
    std::fwrite(chunk.text.data(), 1, chunk.text.size(), stdout);
    std::fflush(stdout);
  };
  Result<Answer> answer = run_request(engine.server(), make_request(options, prompt), on_chunk);
  if (!answer) return report_failure(prompt, answer.error());
  const actors::Finish& finish = answer->finish;
  std::printf("\n");
  std::fprintf(stderr, "[%s, %d tokens, mean depth %.1f, first token %.0f ms, %.1f tokens/s]\n",
               std::string(actors::to_string(finish.reason)).c_str(), finish.usage.completion_tokens,
               finish.usage.mean_depth, finish.ttft_ms, finish.tokens_per_s);
  return 0;
}

/// Answers prompts side by side and prints their JSON lines in the order of the file. Returns how many
/// failed.
class Batch {
 public:
  Batch(Engine& engine, const GenerateOptions& options, const std::vector<Prompt>& prompts,
        const RunFacts& facts)
      : engine_(engine), options_(options), prompts_(prompts), facts_(facts), lines_(prompts.size()) {
    if (prompts.size() > 1) progress_ = std::make_unique<ProgressBar>("prompts", prompts.size());
  }

  int run() {
    const std::size_t streams = std::min(static_cast<std::size_t>(options_.streams), prompts_.size());
    {
      std::vector<std::jthread> clients;
      for (std::size_t i = 0; i < streams; ++i) clients.emplace_back([this] { answer_until_none_is_left(); });
    }
    return failures_;
  }

 private:
  void answer_until_none_is_left() {
    for (std::size_t i = next_++; i < prompts_.size(); i = next_++) {
      std::string text;
      Result<Answer> answer = run_request(engine_.server(), make_request(options_, prompts_[i]),
                                          [&text](const actors::TextChunk& chunk) { text += chunk.text; });
      const std::lock_guard lock(mutex_);
      if (progress_) progress_->advance();
      if (!answer) failures_ += report_failure(prompts_[i], answer.error());
      lines_[i] = answer ? json::serialize(to_json(prompts_[i], text, *answer, facts_)) + "\n" : "";
      print_what_is_due();
    }
  }
  void print_what_is_due() {
    for (; due_ < lines_.size() && lines_[due_]; ++due_) {
      std::fputs(lines_[due_]->c_str(), stdout);
      lines_[due_].emplace();  // an empty text: printed
    }
    std::fflush(stdout);
  }

  Engine& engine_;
  const GenerateOptions& options_;
  const std::vector<Prompt>& prompts_;
  const RunFacts facts_;
  std::atomic<std::size_t> next_ = 0;
  std::mutex mutex_;  // what follows
  std::unique_ptr<ProgressBar> progress_;
  std::vector<std::optional<std::string>> lines_;  // by prompt; absent: not done
  std::size_t due_ = 0;
  int failures_ = 0;
};

void print_memory(Engine& engine) {
  const Result<actors::Stats> stats = engine.server().stats(std::chrono::seconds(10));
  if (!stats) return;
  for (const actors::ModelStats& m : stats->models) {
    std::fprintf(stderr, "[%s%s: layers 1-%d of %d resident, weights %zu bytes, KV %zu of %zu bytes]\n",
                 m.name.c_str(), m.synthetic ? " (synthetic)" : "", m.resident, m.layers, m.weight_bytes,
                 m.kv_bytes_used, m.kv_bytes_total);
  }
}

int run_generate(GenerateOptions options) {
  const auto failed = [](const Error& error) {
    std::fprintf(stderr, "helios generate: %s\n", error.message.c_str());
    return 1;
  };
  std::vector<Prompt> prompts{{"0", options.prompt, options.raw}};
  if (!options.prompts_file.empty()) {
    Result<std::vector<Prompt>> read = read_prompts(options.prompts_file, options.raw);
    if (!read) return failed(read.error());
    prompts = std::move(*read);
  }
  start_logging(options.engine.log_format, options.engine.log_level);
  options.engine.models = {options.model};
  const auto begun = std::chrono::steady_clock::now();
  Result<std::unique_ptr<Engine>> engine = Engine::start(options.engine);
  if (!engine) return failed(engine.error());
  if (auto ready = (*engine)->server().wait_ready(std::chrono::minutes(10)); !ready)
    return failed(ready.error());
  const RunFacts facts{
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begun).count(),
      !synthetic_models((*engine)->server()).empty()};

  int failures = 0;
  if (options.as_json) {
    failures = Batch(**engine, options, prompts, facts).run();
  } else {
    for (const Prompt& prompt : prompts) failures += answer_one(**engine, options, prompt);
    print_memory(**engine);
  }
  engine->reset();
  stop_logging();
  return failures == 0 ? 0 : 1;
}

}  // namespace

void add_generate(CLI::App& program, Run& run) {
  auto options = std::make_shared<GenerateOptions>();
  CLI::App* command = program.add_subcommand("generate", "Answer one prompt or a file of prompts");
  command->add_option("--model", options->model, kModelHelp)->required();
  auto* prompt = command->add_option("--prompt", options->prompt, "One user turn (or plain text with --raw)");
  auto* file = command->add_option("--prompts", options->prompts_file,
                                   "JSON lines with \"prompt\" and, if wanted, \"id\" and \"raw\"");
  prompt->excludes(file);
  command->add_flag("--raw", options->raw, "Continue the text as it is: no chat template");
  command->add_flag("--json", options->as_json, "One JSON line a prompt on stdout");
  command
      ->add_option("--streams", options->streams,
                   "Prompts of a file that are answered side by side (with --json)")
      ->check(CLI::Range(1, 1024));
  add_sampling_options(*command, options->sampling);
  add_engine_options(*command, options->engine);
  command->callback([options, prompt, file, &run] {
    if (prompt->count() + file->count() == 0) throw CLI::RequiredError("--prompt or --prompts");
    run = [options] { return run_generate(*options); };
  });
}

}  // namespace helios::apps
