#include "actors/text_stream.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include "actors/metric_bounds.hpp"

namespace helios::actors {

namespace {

double ms_of(runtime::Duration d) {
  return std::chrono::duration<double, std::milli>(d).count();
}
double seconds_of(runtime::Duration d) {
  return std::chrono::duration<double>(d).count();
}

}  // namespace

struct TextStream::Entry {
  RequestId id = 0;
  std::shared_ptr<TokenStream> stream;
  model::StreamDetokenizer detokenizer;
  model::StopMatcher stops;
  bool want_tokens = false;  // logprobs asked: a chunk per token even without text
  std::string label;
  runtime::TimePoint received;
  std::optional<runtime::TimePoint> first_token, last_token, full_since;
  TextChunk pending;
  std::size_t pending_bytes = 0;
  std::uint64_t next_seq = 1;
  Finish result;  // filled as tokens come
  double depth_sum = 0;
  bool finished = false;

  Entry(std::shared_ptr<const model::Tokenizer> tokenizer, std::vector<std::string> stop_strings)
      : detokenizer(std::move(tokenizer)), stops(std::move(stop_strings)) {}
  /// Whatever happens to the stage, a reader is told.
  ~Entry() {
    if (!finished && stream) {
      Finish lost;
      lost.error = fail(Errc::dropped, "the text stage failed before the answer was complete");
      stream->finish(std::move(lost));
    }
  }
  Entry(const Entry&) = delete;
  Entry& operator=(const Entry&) = delete;
};

struct TextStream::Meters {
  runtime::Histogram& ttft;
  runtime::Histogram& itl;
  runtime::Histogram& e2e;
  runtime::Counter& stop;
  runtime::Counter& length;
  runtime::Counter& cancelled;
  runtime::Counter& error;

  runtime::Counter& by_reason(FinishReason reason) {
    switch (reason) {
      case FinishReason::stop:
        return stop;
      case FinishReason::length:
        return length;
      case FinishReason::cancelled:
        return cancelled;
      case FinishReason::error:
        break;
    }
    return error;
  }
};

TextStream::TextStream(TextStreamOptions options) : options_(std::move(options)) {
  if (runtime::Registry* m = options_.metrics) {
    const auto done = [&](const char* reason) -> runtime::Counter& {
      return m->counter("helios_request_success_total",
                        {{"model_name", options_.model_name}, {"finished_reason", reason}},
                        "Requests that ended, by reason");
    };
    const runtime::Labels labels{{"model_name", options_.model_name}};
    meters_ =
        std::make_unique<Meters>(Meters{m->histogram("helios_time_to_first_token_seconds", seconds_bounds(),
                                                     labels, "Request read to first token queued"),
                                        m->histogram("helios_inter_token_latency_seconds", seconds_bounds(),
                                                     labels, "Gap between two tokens of a request"),
                                        m->histogram("helios_e2e_request_latency_seconds", seconds_bounds(),
                                                     labels, "Request read to its end"),
                                        done("stop"), done("length"), done("cancelled"), done("error")});
  }
}

TextStream::~TextStream() = default;

runtime::Task<> TextStream::on(WireText msg) {
  wire_ = std::move(msg);
  co_return;
}

runtime::Task<> TextStream::on(OpenText msg) {
  auto entry = std::make_unique<Entry>(options_.file->tokenizer_ptr(), msg.sampling.stop);
  entry->id = msg.id;
  entry->stream = std::move(msg.stream);
  entry->want_tokens = msg.sampling.logprobs > 0;
  entry->label = std::move(msg.label);
  entry->received = msg.received;
  entry->result.usage.prompt_tokens = msg.prompt_tokens;
  entries_.insert_or_assign(msg.id, std::move(entry));
  co_return;
}

runtime::Task<> TextStream::on(StepText msg) {
  for (SampledToken& token : msg.tokens) {
    const auto it = entries_.find(token.id);
    if (it == entries_.end() || it->second->finished) continue;  // made after its stop string: not in usage
    push(*it->second, token, msg.at);
  }
  for (EndOfText& end : msg.ends) {
    const auto it = entries_.find(end.id);
    if (it == entries_.end()) continue;
    finish(*it->second, end.reason, std::move(end.error));
    entries_.erase(it);
    RequestDone done{end.id};
    (void)co_await wire_->router.send(std::move(done));  // fails only when Router has stopped
  }
}

runtime::Task<> TextStream::on_stop() {
  for (auto& [id, entry] : entries_) {
    finish(*entry, FinishReason::error,
           fail(Errc::draining, "the server stopped before the answer was complete"));
  }
  entries_.clear();
  co_return;
}

void TextStream::push(Entry& entry, SampledToken& token, runtime::TimePoint at) {
  Usage& usage = entry.result.usage;
  ++usage.completion_tokens;
  ++usage.exit_histogram[token.info.depth];
  usage.breaches += token.breach ? 1 : 0;
  entry.depth_sum += token.info.depth;
  entry.result.token_ids.push_back(token.info.token);
  if (!entry.first_token) {
    entry.first_token = at;
    if (meters_) meters_->ttft.observe(seconds_of(at - entry.received));
  } else if (meters_) {
    meters_->itl.observe(seconds_of(at - *entry.last_token));
  }
  entry.last_token = at;

  if (!token.stop_token) {
    std::string text = entry.stops.push(entry.detokenizer.push(token.info.token));
    entry.pending_bytes += text.size() + sizeof(TokenInfo) + token.info.top.size() * sizeof(TopLogprob);
    entry.pending.text += text;
    entry.pending.tokens.push_back(std::move(token.info));
    if (entry.stops.matched()) {
      stop_early(entry, FinishReason::stop, std::nullopt);
      return;
    }
  }
  write(entry, at);
}

/// Hands over what is ready. A full stream is no reason to wait: the text is kept and merged with what
/// follows.
void TextStream::write(Entry& entry, runtime::TimePoint at) {
  if (entry.stream->abandoned()) {
    stop_early(entry, FinishReason::cancelled, std::nullopt);
    return;
  }
  if (entry.pending.text.empty() && !(entry.want_tokens && !entry.pending.tokens.empty())) return;
  entry.pending.seq = entry.next_seq;
  if (entry.stream->try_write(entry.pending)) {
    entry.pending = TextChunk{};
    entry.pending_bytes = 0;
    entry.full_since.reset();
    ++entry.next_seq;
    return;
  }
  if (!entry.full_since) entry.full_since = at;
  if (entry.pending_bytes > options_.pending_bytes_max || at - *entry.full_since > options_.write_deadline) {
    const std::size_t unread = entry.stream->buffered_bytes();
    entry.pending = TextChunk{};  // nobody reads it
    stop_early(entry, FinishReason::error,
               fail(Errc::deadline_exceeded,
                    fmt::format("the reader left {} bytes unread for {:.1f} s; read faster or ask for less",
                                unread, seconds_of(at - *entry.full_since))));
  }
}

/// Ends the stream now; the sequence is freed by the Scheduler, whose EndOfText removes the entry.
void TextStream::stop_early(Entry& entry, FinishReason reason, std::optional<Error> error) {
  finish(entry, reason, std::move(error));
  if (!wire_) return;
  StopText stop{entry.id};
  (void)wire_->scheduler.tell_urgent(stop);  // a Scheduler that is gone has freed the sequence
}

void TextStream::finish(Entry& entry, FinishReason reason, std::optional<Error> error) {
  if (entry.finished) return;
  entry.finished = true;
  if (reason == FinishReason::stop || reason == FinishReason::length) {
    // What was held back in case of a stop string or an unfinished code point is text after all.
    entry.pending.text += entry.stops.push(entry.detokenizer.flush());
    entry.pending.text += entry.stops.flush();
  }
  Finish& result = entry.result;
  const int n = result.usage.completion_tokens;
  result.reason = reason;
  result.error = std::move(error);
  result.usage.mean_depth = n > 0 ? entry.depth_sum / n : 0.0;
  if (entry.first_token) {
    result.ttft_ms = ms_of(*entry.first_token - entry.received);
    const double span = seconds_of(*entry.last_token - *entry.first_token);
    result.tokens_per_s = n > 1 && span > 0 ? (n - 1) / span : 0.0;
  }
  if (meters_) {
    meters_->by_reason(reason).add(1);
    meters_->e2e.observe(seconds_of(now() - entry.received));
  }
  spdlog::info(
      "request {} model={} reason={} prompt={} completion={} depth={:.1f} breaches={} ttft_ms={:.1f} "
      "tok_s={:.1f}{}{}",
      entry.id, options_.model_name, to_string(reason), result.usage.prompt_tokens, n,
      result.usage.mean_depth, result.usage.breaches, result.ttft_ms, result.tokens_per_s,
      entry.label.empty() ? "" : fmt::format(" label={}", entry.label),
      result.error ? fmt::format(" error=\"{}\"", result.error->message) : "");
  entry.pending.seq = entry.next_seq;
  entry.stream->finish(std::move(result), std::move(entry.pending));
}

}  // namespace helios::actors
