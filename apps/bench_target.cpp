#include "apps/bench_target.hpp"

#include <spdlog/fmt/fmt.h>

#include <charconv>
#include <mutex>
#include <utility>

#include "apps/engine.hpp"
#include "apps/line_client.hpp"

namespace helios::apps {

namespace {

class Fnv1a {
 public:
  void add(const void* data, std::size_t size) {
    for (std::size_t i = 0; i < size; ++i)
      hash_ = (hash_ ^ static_cast<const unsigned char*>(data)[i]) * 1099511628211ULL;
  }
  std::uint64_t value() const { return hash_; }

 private:
  std::uint64_t hash_ = 14695981039346656037ULL;
};

class LocalTarget final : public BenchTarget {
 public:
  explicit LocalTarget(std::unique_ptr<Engine> engine) : engine_(std::move(engine)) {}

  RequestRecord run(const BenchRequest& request) override {
    RequestRecord record;
    actors::GenerateRequest generate;
    generate.prompt = request.prompt;
    generate.raw = true;
    generate.sampling.max_tokens = request.output_tokens;
    generate.sampling.ignore_eos = true;
    generate.sampling.temperature = 0;
    record.sent = std::chrono::steady_clock::now();
    Result<Answer> answer =
        run_request(engine_->server(), std::move(generate), [&](const actors::TextChunk& chunk) {
          const BenchTime now = std::chrono::steady_clock::now();
          record.token_times.insert(record.token_times.end(), std::max<std::size_t>(1, chunk.tokens.size()),
                                    now);
        });
    record.done = std::chrono::steady_clock::now();
    if (!answer) {
      record.error = answer.error().message;
      return record;
    }
    const actors::Finish* finish = &answer->finish;
    record.prompt_tokens = finish->usage.prompt_tokens;
    record.completion_tokens = finish->usage.completion_tokens;
    record.exit_histogram = finish->usage.exit_histogram;
    Fnv1a hash;
    hash.add(finish->token_ids.data(), finish->token_ids.size() * sizeof(std::int32_t));
    record.text_hash = hash.value();
    return record;
  }

  bool synthetic() override { return !synthetic_models(engine_->server()).empty(); }

 private:
  std::unique_ptr<Engine> engine_;
};

/// Keeps idle connections for the next request.
class RemoteTarget final : public BenchTarget {
 public:
  RemoteTarget(std::string target, int exit_layer, LineClient first)
      : target_(std::move(target)), exit_layer_(exit_layer) {
    idle_.push_back(std::move(first));
  }

  RequestRecord run(const BenchRequest& request) override {
    RequestRecord record;
    record.sent = std::chrono::steady_clock::now();
    Result<LineClient> client = take();
    if (!client) {
      record.error = client.error().message;
      return record;
    }
    std::string options =
        fmt::format("mode=raw max_tokens={} temperature=0 ignore_eos=1", request.output_tokens);
    if (exit_layer_ > 0) options += fmt::format(" exit_layer={}", exit_layer_);
    Fnv1a hash;
    record.sent = std::chrono::steady_clock::now();
    Result<LineReply> reply = client->generate(request.prompt, options, [&](std::string_view text) {
      record.token_times.push_back(std::chrono::steady_clock::now());
      hash.add(text.data(), text.size());
    });
    record.done = std::chrono::steady_clock::now();
    if (!reply) {
      record.error = reply.error().message;
      return record;
    }
    record.prompt_tokens = number(reply->fields["prompt"]);
    record.completion_tokens = number(reply->fields["completion"]);
    record.text_hash = hash.value();
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(*client));
    return record;
  }

  bool synthetic() override {
    Result<LineClient> client = take();
    if (!client) return false;
    const Result<std::string> stats = client->command("STATS stats");
    return stats && stats->find("\"synthetic\":true") != std::string::npos;
  }

 private:
  static int number(const std::string& text) {
    int value = 0;
    std::from_chars(text.data(), text.data() + text.size(), value);
    return value;
  }
  Result<LineClient> take() {
    {
      const std::lock_guard lock(mutex_);
      if (!idle_.empty()) {
        LineClient client = std::move(idle_.back());
        idle_.pop_back();
        return client;
      }
    }
    return LineClient::connect(target_, std::chrono::seconds(600));
  }

  const std::string target_;
  const int exit_layer_;
  std::mutex mutex_;
  std::vector<LineClient> idle_;  // at most one per stream
};

}  // namespace

Result<std::unique_ptr<BenchTarget>> make_local_target(EngineOptions options) {
  Result<std::unique_ptr<Engine>> engine = Engine::start(options);
  if (!engine) return engine.error();
  if (auto ready = (*engine)->server().wait_ready(std::chrono::minutes(10)); !ready) return ready.error();
  return std::unique_ptr<BenchTarget>(std::make_unique<LocalTarget>(std::move(*engine)));
}

Result<std::unique_ptr<BenchTarget>> make_remote_target(std::string host_and_port, int exit_layer) {
  Result<LineClient> first = LineClient::connect(host_and_port, std::chrono::seconds(600));
  if (!first) return first.error();
  return std::unique_ptr<BenchTarget>(
      std::make_unique<RemoteTarget>(std::move(host_and_port), exit_layer, std::move(*first)));
}

}  // namespace helios::apps
