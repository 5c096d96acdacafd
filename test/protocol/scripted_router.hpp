#pragma once
// A Router whose answers the test writes.

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "actors/messages.hpp"
#include "runtime/actor.hpp"
#include "runtime/actor_system.hpp"

namespace helios::test {

/// Shared by the test and the actor. The lock is for tests with threads.
struct Script {
  struct Request {
    actors::RequestId id = 0;
    actors::GenerateRequest request;
    std::shared_ptr<actors::TokenStream> stream;
  };
  std::mutex mutex;
  std::optional<Error> refuse;   // answer to the next Submits and SetDepths
  bool hold_submits = false;     // keep replies: the request is neither admitted nor refused
  bool finish_on_cancel = true;  // Cancel ends the stream at once
  std::vector<runtime::Reply<actors::Accepted>> held;
  std::vector<Request> requests;  // in order of admission; ids count from 1
  std::vector<actors::RequestId> cancelled;
  std::vector<std::pair<std::string, int>> depths;  // SetDepth: model, layer
  actors::Stats stats;

  Request request(std::size_t index) {
    const std::lock_guard lock(mutex);
    return requests.at(index);
  }
  std::size_t request_count() {
    const std::lock_guard lock(mutex);
    return requests.size();
  }
  std::vector<actors::RequestId> cancels() {
    const std::lock_guard lock(mutex);
    return cancelled;
  }
};

class ScriptedRouter final
    : public runtime::Actor<ScriptedRouter, actors::Submit, actors::Cancel, actors::SetDepth,
                            actors::GetStats, actors::Drain, actors::WaitReady> {
 public:
  explicit ScriptedRouter(std::shared_ptr<Script> script) : script_(std::move(script)) {}

  runtime::Task<> on(actors::Submit message) {
    const std::lock_guard lock(script_->mutex);
    if (script_->refuse) {
      message.reply.fail(*script_->refuse);
      co_return;
    }
    const actors::RequestId id = script_->requests.size() + 1;
    script_->requests.push_back({id, std::move(message.request), std::move(message.stream)});
    if (script_->hold_submits) {
      script_->held.push_back(std::move(message.reply));
    } else {
      message.reply.send(actors::Accepted{.id = id, .prompt_tokens = 31});
    }
  }
  runtime::Task<> on(actors::Cancel message) {
    const std::lock_guard lock(script_->mutex);
    script_->cancelled.push_back(message.id);
    if (script_->finish_on_cancel) {
      actors::Finish finish;
      finish.reason = actors::FinishReason::cancelled;
      script_->requests.at(message.id - 1).stream->finish(std::move(finish));
    }
    co_return;
  }
  runtime::Task<> on(actors::SetDepth message) {
    const std::lock_guard lock(script_->mutex);
    script_->depths.emplace_back(message.model, message.layer);
    if (script_->refuse) {
      message.reply.fail(*script_->refuse);
    } else {
      message.reply.send(actors::Depth{message.layer});
    }
    co_return;
  }
  runtime::Task<> on(actors::GetStats message) {
    const std::lock_guard lock(script_->mutex);
    message.reply.send(script_->stats);
    co_return;
  }
  runtime::Task<> on(actors::Drain message) {
    message.reply.send(actors::Drained{});
    co_return;
  }
  runtime::Task<> on(actors::WaitReady message) {
    message.reply.send(actors::Ready{});
    co_return;
  }

 private:
  std::shared_ptr<Script> script_;
};

/// Puts one chunk on a request's stream.
inline void write_text(const std::shared_ptr<actors::TokenStream>& stream, std::string text,
                       std::vector<actors::TokenInfo> tokens = {}) {
  actors::TextChunk chunk;
  chunk.text = std::move(text);
  chunk.tokens = std::move(tokens);
  stream->try_write(chunk);
}

inline actors::Finish finish_of(actors::FinishReason reason, int prompt = 31, int completion = 16) {
  actors::Finish finish;
  finish.reason = reason;
  finish.usage.prompt_tokens = prompt;
  finish.usage.completion_tokens = completion;
  finish.usage.mean_depth = 30;
  finish.usage.exit_histogram = {{30, completion}};
  finish.ttft_ms = 41.4;
  finish.tokens_per_s = 198.2;
  return finish;
}

}  // namespace helios::test
