#include "actors/token_stream.hpp"

#include <condition_variable>
#include <deque>
#include <mutex>

#include "runtime/one_shot.hpp"

namespace helios::actors {

namespace {

std::size_t bytes_of(const TextChunk& chunk) {
  std::size_t bytes = sizeof(TextChunk) + chunk.text.size() + chunk.tokens.size() * sizeof(TokenInfo);
  for (const TokenInfo& token : chunk.tokens) bytes += token.top.size() * sizeof(TopLogprob);
  return bytes;
}

}  // namespace

std::string_view to_string(FinishReason reason) noexcept {
  switch (reason) {
    case FinishReason::stop:
      return "stop";
    case FinishReason::length:
      return "length";
    case FinishReason::cancelled:
      return "cancelled";
    case FinishReason::error:
      break;
  }
  return "error";
}

struct TokenStream::State {
  explicit State(std::size_t bytes) : capacity(bytes) {}

  /// With the lock held.
  bool has_event() const { return !chunks.empty() || (finish && !delivered); }
  bool at_end() const { return delivered || abandoned; }
  std::optional<StreamEvent> take() {
    if (!chunks.empty()) {
      TextChunk chunk = std::move(chunks.front());
      chunks.pop_front();
      bytes -= bytes_of(chunk);
      return StreamEvent(std::move(chunk));
    }
    if (finish && !delivered) {
      delivered = true;
      return StreamEvent(std::move(*finish));
    }
    return std::nullopt;
  }
  void notify() {
    if (waiter) std::exchange(waiter, nullptr)->set(true);
    arrived.notify_all();
  }

  mutable std::mutex mutex;
  std::condition_variable arrived;  // for plain threads
  std::shared_ptr<runtime::OneShot<bool>> waiter;
  std::deque<TextChunk> chunks;
  std::optional<Finish> finish;
  std::size_t bytes = 0;
  const std::size_t capacity;
  bool delivered = false;
  bool abandoned = false;
};

TokenStream::TokenStream(std::size_t capacity_bytes) : state_(std::make_unique<State>(capacity_bytes)) {}
TokenStream::~TokenStream() = default;

std::shared_ptr<TokenStream> TokenStream::create(std::size_t capacity_bytes) {
  return std::shared_ptr<TokenStream>(new TokenStream(capacity_bytes));
}

runtime::Task<std::optional<StreamEvent>> TokenStream::next() {
  while (true) {
    std::shared_ptr<runtime::OneShot<bool>> arrival;
    {
      const std::lock_guard lock(state_->mutex);
      if (state_->has_event()) co_return state_->take();
      if (state_->at_end()) co_return std::nullopt;
      arrival = state_->waiter = runtime::OneShot<bool>::create();
    }
    co_await arrival->wait();
  }
}

std::optional<StreamEvent> TokenStream::wait_next(runtime::Duration timeout) {
  std::unique_lock lock(state_->mutex);
  state_->arrived.wait_for(lock, timeout, [this] { return state_->has_event() || state_->at_end(); });
  return state_->take();
}

std::optional<StreamEvent> TokenStream::try_next() {
  const std::lock_guard lock(state_->mutex);
  return state_->take();
}

void TokenStream::abandon() noexcept {
  const std::lock_guard lock(state_->mutex);
  state_->abandoned = true;
  state_->chunks.clear();
  state_->bytes = 0;
  state_->notify();
}

bool TokenStream::finished() const noexcept {
  const std::lock_guard lock(state_->mutex);
  return state_->delivered;
}

bool TokenStream::try_write(TextChunk& chunk) {
  const std::lock_guard lock(state_->mutex);
  if (state_->abandoned || state_->finish) return true;  // nobody will read it
  const std::size_t bytes = bytes_of(chunk);
  // An empty stream takes any chunk, so a bound below one chunk cannot block for ever.
  if (!state_->chunks.empty() && state_->bytes + bytes > state_->capacity) return false;
  state_->bytes += bytes;
  state_->chunks.push_back(std::move(chunk));
  state_->notify();
  return true;
}

bool TokenStream::finish(Finish event, TextChunk last) {
  const std::lock_guard lock(state_->mutex);
  if (state_->finish) return false;
  if (!state_->abandoned && !(last.text.empty() && last.tokens.empty())) {
    state_->bytes += bytes_of(last);
    state_->chunks.push_back(std::move(last));
  }
  state_->finish = std::move(event);
  state_->notify();
  return true;
}

bool TokenStream::abandoned() const noexcept {
  const std::lock_guard lock(state_->mutex);
  return state_->abandoned;
}

std::size_t TokenStream::buffered_bytes() const noexcept {
  const std::lock_guard lock(state_->mutex);
  return state_->bytes;
}

}  // namespace helios::actors
