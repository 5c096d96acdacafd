#pragma once
// The one-way street from the text stage to whoever reads an answer. Bounded in bytes; the writer never
// waits.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "runtime/clock.hpp"
#include "runtime/result.hpp"
#include "runtime/task.hpp"

namespace helios::actors {

/// A candidate of one sampled position.
struct TopLogprob {
  std::int32_t token = 0;
  float logprob = 0;
};

/// One sampled token. The three vectors of a chunk are of equal length.
struct TokenInfo {
  std::int32_t token = 0;
  float logprob = 0;            // natural log of the sampling distribution before temperature
  int depth = 0;                // layers run for this token, 1..L
  std::vector<TopLogprob> top;  // as many as Sampling::logprobs asked for
};

/// Text that is ready to show: whole code points, no part of a stop string. `seq` counts chunks from 1
/// without gaps. `text` may be empty when a token completes no code point and the request asked for logprobs
/// or ids.
struct TextChunk {
  std::string text;
  std::uint64_t seq = 0;
  std::vector<TokenInfo> tokens;
};

enum class FinishReason : std::uint8_t { stop, length, cancelled, error };
std::string_view to_string(FinishReason reason) noexcept;

/// Counts of sampled ids, each once. A stop token (eos or a requested stop id) is counted in
/// completion_tokens and the histogram and is not part of the text; a token whose text completed a stop
/// string is counted, later ones are not.
struct Usage {
  int prompt_tokens = 0;
  int completion_tokens = 0;
  double mean_depth = 0;              // layers, over completion tokens; 0 without any
  std::map<int, int> exit_histogram;  // depth -> tokens
  int breaches = 0;                   // tokens below the confidence threshold of their exit
};

/// The one terminal event of an accepted request.
struct Finish {
  FinishReason reason = FinishReason::error;
  std::optional<Error> error = {};  // set exactly when reason == error
  Usage usage = {};
  double ttft_ms = 0;                        // Submit read by Router to first token queued; 0 without tokens
  double tokens_per_s = 0;                   // (n - 1) / (last - first); 0 with fewer than two tokens
  std::vector<std::int32_t> token_ids = {};  // every sampled id that counts, in order
};

using StreamEvent = std::variant<TextChunk, Finish>;

/// Single producer (the text stage), single consumer (a session or an embedder), any threads.
/// The consumer sees chunks in order, then one Finish, then nothing. Everything it does not read is bounded
/// by `capacity_bytes` of text and token records, plus the Finish, which always has a place.
class TokenStream {
 public:
  static std::shared_ptr<TokenStream> create(std::size_t capacity_bytes = std::size_t{1} << 20);
  ~TokenStream();
  TokenStream(const TokenStream&) = delete;
  TokenStream& operator=(const TokenStream&) = delete;

  // --- consumer ---
  /// The next event; resumes on the caller's executor (its strand). std::nullopt after Finish was delivered.
  /// One waiter at a time.
  runtime::Task<std::optional<StreamEvent>> next();
  /// As next(), for a plain thread: blocks up to `timeout`. std::nullopt: nothing came in time, or all was
  /// delivered.
  std::optional<StreamEvent> wait_next(runtime::Duration timeout);
  /// As next(), never waits.
  std::optional<StreamEvent> try_next();
  /// The reader is gone: what is buffered is dropped, and the writer ends the request at its next token.
  void abandon() noexcept;
  /// Finish was delivered to the consumer.
  bool finished() const noexcept;

  // --- producer ---
  /// False when the chunk does not fit now; the chunk is untouched then.
  bool try_write(TextChunk& chunk);
  /// The terminal event, after `last` (the rest of the text, if any; it has a place too). The first call
  /// counts, later ones do nothing. Returns whether this call was the first.
  bool finish(Finish event, TextChunk last = {});
  bool abandoned() const noexcept;
  std::size_t buffered_bytes() const noexcept;

 private:
  struct State;
  explicit TokenStream(std::size_t capacity_bytes);
  std::unique_ptr<State> state_;
};

}  // namespace helios::actors
