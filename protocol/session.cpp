#include "protocol/session.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <utility>
#include <variant>

#include "protocol/reply_text.hpp"

namespace helios::protocol {

namespace {

constexpr std::size_t kWriteBytes =
    64 * 1024;  // of one write: coalesces what a step made, bounds what a reset loses
constexpr std::size_t kCookieBytes = 256;
constexpr std::size_t kKeyBytes = 256;   // compared bytes of a key; longer ones are refused at start
constexpr std::size_t kShownBytes = 32;  // of a client's word in an error text

void count(runtime::Counter* counter) {
  if (counter != nullptr) counter->add(1);
}

double seconds(std::chrono::milliseconds time) {
  return std::chrono::duration<double>(time).count();
}

}  // namespace

Session::Session(SessionOptions options, actors::RouterAddress router, runtime::Executor& executor,
                 ByteSink& sink, std::string peer, SessionMetrics metrics)
    : options_(std::move(options)),
      router_(std::move(router)),
      executor_(executor),
      sink_(sink),
      peer_(std::move(peer)),
      metrics_(metrics),
      parser_(options_.parser),
      writer_(options_.writer),
      auth_tries_left_(options_.auth_tries),
      authenticated_(options_.keys.empty()),
      strand_(executor),
      scope_(strand_) {
  parser_.allow_payloads(authenticated_);
}

Session::~Session() = default;

void Session::start() {
  started_ = last_input_ = executor_.now();
  writer_.info(info_json(options_, authenticated_));
  flush();
  arm();
}

void Session::received(std::string_view bytes) {
  if (closed_ || ending_ || !input_open_) return;
  last_input_ = executor_.now();
  bool line_is_new = !parser_.in_line();
  while (std::optional<ParserEvent> event = parser_.next(bytes)) {
    line_is_new = true;
    std::visit([this](auto& e) { handle(std::move(e)); }, *event);
    if (closed_ || ending_ || !input_open_) break;
    if (writer_.overflowed()) {
      count(metrics_.slow_readers);
      end("TOOLONG", fmt::format("over {} unread bytes of answers", options_.writer.control_bytes));
      break;
    }
  }
  if (line_is_new) line_started_ = last_input_;
  flush();
  arm();
}

void Session::input_ended() {
  if (closed_ || ending_ || !input_open_) return;
  if (std::optional<ParserEvent> event = parser_.finish()) {
    std::visit([this](auto& e) { handle(std::move(e)); }, *event);
  }
  input_open_ = false;
  finishing_ = true;
  flush();
  arm();
}

void Session::written() {
  writing_ = false;
  if (closed_) return;
  last_input_ = executor_.now();  // a peer that reads is not idle
  wake_waiting();
  flush();
  arm();
}

void Session::disconnected() {
  if (closed_) return;
  if (!live_.empty())
    spdlog::info("{}: gone with {} running requests, which are cancelled", peer_, live_.size());
  close(true);
}

void Session::drain() {
  draining_ = true;
  finishing_ = true;
  flush();
}

void Session::stop() {
  close(false);
  for (auto& [tag, live] : live_) {
    if (live.stream) live.stream->abandon();  // also ends a request whose admission is still on its way
  }
  scope_.destroy_children();
  live_.clear();
  pending_ = 0;
  report_done();
}

// ---------------------------------------------------------------------------------------------------------------
// Commands
// ---------------------------------------------------------------------------------------------------------------

void Session::handle(const Fault& fault) {
  count(metrics_.faults);
  if (fault.kind == Fault::Kind::foreign) {
    count(metrics_.foreign);
    spdlog::warn("{}: {}: closed unanswered", peer_, fault.message);
    return close(true);
  }
  if (fault.kind == Fault::Kind::payload_refused) return end("AUTH", fault.message);
  const bool too_long =
      fault.kind == Fault::Kind::line_too_long || fault.kind == Fault::Kind::payload_too_long;
  if (fault.fatal) return end(too_long ? "TOOLONG" : "BADREQ", fault.message);
  writer_.error("-", "BADREQ", fault.message);
  if (++faults_in_row_ >= options_.faulty_lines)
    end("BADREQ", fmt::format("{} faulty lines in a row", faults_in_row_));
}

void Session::handle(Line line) {
  count(metrics_.commands);
  const bool open_to_all =
      line.verb == "AUTH" || line.verb == "INFO" || line.verb == "PING" || line.verb == "QUIT";
  if (!authenticated_ && !open_to_all) {
    const bool has_tag = !line.words.empty() && is_tag(line.words[0]);
    return writer_.error(has_tag ? std::string_view(line.words[0]) : "-", "AUTH", "send AUTH key first");
  }
  if (line.verb == "GEN") {
    on_gen(line);
  } else if (line.verb == "CANCEL") {
    on_cancel(line);
  } else if (line.verb == "PING") {
    const std::string cookie = line.words.empty() ? std::string() : line.words[0];
    if (cookie.size() > kCookieBytes) {
      return writer_.error("-", "BADREQ", fmt::format("PING: a cookie may have {} bytes", kCookieBytes));
    }
    writer_.pong(cookie);
  } else if (line.verb == "STATS") {
    on_stats(line);
  } else if (line.verb == "LOAD") {
    on_load(line);
  } else if (line.verb == "AUTH") {
    return on_auth(line);
  } else if (line.verb == "INFO") {
    writer_.info(info_json(options_, authenticated_));
  } else if (line.verb == "QUIT") {
    input_open_ = false;
    finishing_ = true;
    bye_wanted_ = true;
  } else {
    count(metrics_.faults);
    writer_.error("-", "UNKNOWN",
                  fmt::format("no verb '{}': there are INFO AUTH GEN CANCEL PING STATS LOAD QUIT",
                              one_line(line.verb, kShownBytes)));
    if (++faults_in_row_ >= options_.faulty_lines)
      end("BADREQ", fmt::format("{} faulty lines in a row", faults_in_row_));
    return;
  }
  faults_in_row_ = 0;
}

void Session::on_auth(const Line& line) {
  if (options_.keys.empty() || authenticated_) return writer_.ok("-", "authenticated");
  if (!line.words.empty() && key_matches(options_.keys, line.words[0])) {
    authenticated_ = true;
    faults_in_row_ = 0;
    parser_.allow_payloads(true);
    return writer_.ok("-", "authenticated");
  }
  spdlog::warn("{}: wrong key", peer_);
  if (--auth_tries_left_ <= 0) return end("AUTH", "wrong key, too often");
  writer_.error("-", "AUTH", fmt::format("wrong key, {} tries left", auth_tries_left_));
}

/// Whether the line's first word can be the tag of a new command; says why not.
bool Session::admit_tag(const Line& line, std::string_view form) {
  if (line.words.size() != 1 || !is_tag(line.words[0])) {
    writer_.error("-", "BADREQ", fmt::format("the form is {}; a tag is 1 to 64 of A-Z a-z 0-9 _ . -", form));
    return false;
  }
  const std::string& tag = line.words[0];
  if (live_.contains(tag) || writer_.holds(tag)) {
    // Not under the tag itself: that would read as the end of the request that owns it.
    writer_.error("-", "BADREQ", fmt::format("tag {} is in use", tag));
    return false;
  }
  if (draining_) {
    refuse(tag, Error{Errc::draining, "the server is shutting down"});
    return false;
  }
  if (live_.size() + pending_ >= options_.live_requests) {
    refuse(tag, Error{Errc::busy,
                      fmt::format("{} commands of this connection are unfinished", options_.live_requests)});
    return false;
  }
  if (writer_.queued_bytes() >= options_.unread_bytes) {
    refuse(tag, Error{Errc::busy,
                      fmt::format("over {} bytes of this connection are unread", options_.unread_bytes)});
    return false;
  }
  return true;
}

void Session::refuse(std::string_view tag, const Error& error) {
  writer_.error(tag, error_word(error.code), error_text(error));
}

void Session::on_gen(const Line& line) {
  if (!admit_tag(line, "GEN tag nbytes key=value … or GEN tag \"text\" key=value …")) return;
  const std::string& tag = line.words[0];
  Result<GenerateCommand> command = parse_generate(line);
  if (!command) return refuse(tag, command.error());
  command->request.label = fmt::format("{} {}", peer_, tag);
  Live live;
  live.stream = actors::TokenStream::create(options_.stream_bytes);
  live_.emplace(tag, std::move(live));
  spawn(generate(tag, std::move(*command)));
}

void Session::on_cancel(const Line& line) {
  if (line.words.size() != 1 || !line.options.empty() || !is_tag(line.words[0])) {
    return writer_.error("-", "BADREQ", "the form is CANCEL tag");
  }
  const auto found = live_.find(line.words[0]);
  if (found == live_.end()) return writer_.ok(line.words[0], "not-running");
  if (!found->second.stream) return writer_.error("-", "UNSUPPORTED", "a LOAD cannot be cancelled");
  cancel(found->second);
}

void Session::on_load(const Line& line) {
  if (!admit_tag(line, "LOAD tag model=NAME layer=E")) return;
  const std::string& tag = line.words[0];
  std::string model;
  std::optional<int> layer;
  for (const Option& option : line.options) {
    if (option.key == "model") {
      model = option.value == "default" ? std::string() : option.value;
    } else if (option.key == "layer" && !layer) {
      const Result<std::int64_t> value = parse_integer("layer", option.value, 1, 32767);
      if (!value) return refuse(tag, value.error());
      layer = static_cast<int>(*value);
    } else {
      return refuse(tag, Error{Errc::bad_request, fmt::format("LOAD takes model= and one layer=, not {}=",
                                                              option.key.substr(0, kShownBytes))});
    }
  }
  if (!layer) return refuse(tag, Error{Errc::bad_request, "LOAD needs layer=E, the deepest layer to run"});
  live_.emplace(tag, Live{});
  spawn(load(tag, std::move(model), *layer));
}

void Session::on_stats(const Line& line) {
  const std::string tag = line.words.empty() ? "-" : line.words[0];
  if (line.words.size() > 1 || !line.options.empty() || (tag != "-" && !is_tag(tag))) {
    return writer_.error("-", "BADREQ", "the form is STATS [tag]");
  }
  if (live_.size() + pending_ >= options_.live_requests) {
    return refuse("-", Error{Errc::busy, "too many unfinished commands of this connection"});
  }
  ++pending_;
  spawn(stats(tag));
}

// ---------------------------------------------------------------------------------------------------------------
// Running commands
// ---------------------------------------------------------------------------------------------------------------

runtime::Task<> Session::generate(std::string tag, GenerateCommand command) {
  const std::shared_ptr<actors::TokenStream> stream = live_.at(tag).stream;
  const TokenFields fields = command.fields;
  actors::Submit submit{.request = std::move(command.request), .stream = stream, .reply = {}};
  const Result<actors::Accepted> accepted = co_await router_.ask(std::move(submit), options_.submit_deadline);
  if (!accepted) {
    stream->abandon();  // a late admission then ends at its first token
    if (!ending_ && !closed_) refuse(tag, accepted.error());
    forget(tag);
    co_return;
  }
  Live& live = live_.at(tag);  // a map's nodes stay where they are, and only this task erases this one
  live.id = accepted->id;
  if (!ending_ && !closed_) writer_.open(tag);
  flush();
  arm();
  if (live.cancel_wanted) cancel(live);
  for (;;) {
    while (!has_room(tag)) {
      live.waiting = runtime::OneShot<bool>::create();
      co_await live.waiting->wait();
      live.waiting.reset();
    }
    std::optional<actors::StreamEvent> event = co_await stream->next();
    const bool silent = ending_ || closed_;  // the request is cancelled; its terminal event is still awaited
    if (auto* chunk = event ? std::get_if<actors::TextChunk>(&*event) : nullptr) {
      if (!silent) writer_.token(tag, chunk->text, token_extra(*chunk, fields));
      flush();
      arm();
      continue;
    }
    const auto* finish = event ? std::get_if<actors::Finish>(&*event) : nullptr;
    if (silent) {
      // Nothing is owed to this peer any more.
    } else if (finish == nullptr) {
      writer_.fail(tag, "INTERNAL", "the stream broke off");
    } else if (finish->reason == actors::FinishReason::error) {
      const Error error = finish->error.value_or(Error{Errc::internal, "the request failed"});
      writer_.fail(tag, error_word(error.code), error_text(error));
    } else {
      writer_.end(tag, end_text(*finish));
    }
    break;
  }
  forget(tag);
}

runtime::Task<> Session::load(std::string tag, std::string model, int layer) {
  actors::SetDepth message{.model = std::move(model), .layer = layer, .reply = {}};
  const Result<actors::Depth> depth = co_await router_.ask(std::move(message), options_.load_deadline);
  if (!ending_ && !closed_) {
    if (depth) {
      writer_.ok(tag, fmt::format("resident=1-{}", depth->resident));
    } else {
      refuse(tag, depth.error());
    }
  }
  forget(tag);
}

runtime::Task<> Session::stats(std::string tag) {
  actors::GetStats message;
  const Result<actors::Stats> figures = co_await router_.ask(std::move(message), options_.stats_deadline);
  --pending_;
  report_done();
  if (ending_ || closed_) co_return;
  if (figures) {
    writer_.stats(tag, stats_json(*figures));
  } else {
    refuse(tag, figures.error());
  }
  flush();
  arm();
}

/// Cannot be refused: live_requests is far below the scope's bound, and the scope closes after the session.
void Session::spawn(runtime::Task<> task) {
  if (const Result<void> spawned = scope_.spawn(std::move(task)); !spawned) {
    spdlog::error("{}: {}", peer_, spawned.error().message);
  }
}

/// Once per request: the router knows it by an id, and its place in `live_` stays until its Finish came back.
void Session::cancel(Live& live) {
  live.cancel_wanted = true;
  if (live.cancel_sent || live.id == 0 || !live.stream) return;
  live.cancel_sent = true;
  if (!router_.tell_urgent(actors::Cancel{live.id})) spawn(send_cancel(live.id, live.stream));
}

/// The reserved place was taken: wait for room. A router that is gone cancels nothing, so the writer is told
/// instead.
runtime::Task<> Session::send_cancel(actors::RequestId id, std::shared_ptr<actors::TokenStream> stream) {
  actors::Cancel message{id};
  const Result<void> sent = co_await router_.send(std::move(message));
  if (!sent) stream->abandon();
}

void Session::cancel_all() {
  for (auto& [tag, live] : live_) cancel(live);
}

void Session::forget(const std::string& tag) {
  live_.erase(tag);
  last_input_ = executor_.now();  // idle time counts from the end of the last command
  flush();
  arm();
  report_done();
}

/// Once, by a job of its own, so that no command's frame is on the stack.
void Session::report_done() {
  if (!closed_ || !idle() || std::exchange(done_, true)) return;
  strand_.post([self = shared_from_this()] {
    self->scope_.destroy_children();
    self->sink_.done();
  });
}

// ---------------------------------------------------------------------------------------------------------------
// Output, ends and deadlines
// ---------------------------------------------------------------------------------------------------------------

bool Session::has_room(std::string_view tag) const {
  return ending_ || closed_ || (writer_.has_room(tag) && writer_.queued_bytes() < options_.unread_bytes);
}

void Session::wake_waiting() {
  for (auto& [tag, live] : live_) {
    if (live.waiting && has_room(tag)) live.waiting->set(true);
  }
}

void Session::flush() {
  if (closed_ || writing_) return;
  if (writer_.empty()) {
    if (ending_) return close(false);
    if (!finishing_ || !idle()) return;
    if (!std::exchange(bye_wanted_, false)) return close(false);
    writer_.ok("-", "bye");
  }
  writing_ = true;
  write_started_ = executor_.now();
  sink_.start_write(writer_.take(kWriteBytes));
}

void Session::end(std::string_view word, std::string_view text) {
  if (closed_ || ending_) return;
  ending_ = true;
  input_open_ = false;
  spdlog::info("{}: closed: {} {}", peer_, word, text);
  cancel_all();
  writer_.clear();
  writer_.error("-", word, text, true);
  wake_waiting();
  flush();
  arm();
}

void Session::close(bool reset) {
  if (closed_) return;
  closed_ = true;
  input_open_ = false;
  if (timer_ != 0) executor_.cancel_timer(std::exchange(timer_, 0));
  writer_.clear();
  cancel_all();
  wake_waiting();
  sink_.close(reset);
  report_done();
}

std::optional<Session::Time> Session::next_deadline() const {
  std::optional<Time> next;
  const auto consider = [&](Time time) { next = next ? std::min(*next, time) : time; };
  if (closed_) return next;
  if (writing_) consider(write_started_ + options_.write_deadline);
  if (!input_open_) return next;
  if (!authenticated_) consider(started_ + options_.auth_deadline);
  if (parser_.in_line()) consider(line_started_ + options_.input_deadline);
  if (parser_.in_payload()) consider(last_input_ + options_.input_deadline);
  if (idle() && !writing_) consider(last_input_ + options_.idle_deadline);
  return next;
}

/// Keeps one timer that fires no later than the next deadline; an early one looks again.
void Session::arm() {
  const std::optional<Time> next = next_deadline();
  if (!next || (timer_ != 0 && timer_at_ <= *next)) return;
  if (timer_ != 0) executor_.cancel_timer(timer_);
  timer_at_ = *next;
  timer_ = strand_.post_at(*next, [weak = weak_from_this()] {
    if (const std::shared_ptr<Session> self = weak.lock()) self->on_timer();
  });
}

void Session::on_timer() {
  timer_ = 0;
  if (closed_) return;
  const Time now = executor_.now();
  if (writing_ && now >= write_started_ + options_.write_deadline) {
    count(metrics_.slow_readers);
    spdlog::warn("{}: took no bytes for {} s: closed", peer_, seconds(options_.write_deadline));
    return close(true);
  }
  if (input_open_) {
    if (!authenticated_ && now >= started_ + options_.auth_deadline) {
      return end("AUTH", fmt::format("no key within {} s", seconds(options_.auth_deadline)));
    }
    if ((parser_.in_line() && now >= line_started_ + options_.input_deadline) ||
        (parser_.in_payload() && now >= last_input_ + options_.input_deadline)) {
      return end("TIMEOUT", fmt::format("the rest of a frame did not come within {} s",
                                        seconds(options_.input_deadline)));
    }
    if (idle() && !writing_ && now >= last_input_ + options_.idle_deadline) {
      return end("TIMEOUT", fmt::format("idle for {} s", seconds(options_.idle_deadline)));
    }
  }
  arm();
}

bool key_matches(const std::vector<std::string>& keys, std::string_view attempt) {
  // Always all bytes of all keys: neither the place of a difference nor a key's length shows in the time.
  std::array<unsigned char, kKeyBytes> padded{};
  std::copy_n(attempt.begin(), std::min(attempt.size(), padded.size()), padded.begin());
  unsigned matches = 0;
  for (const std::string& key : keys) {
    std::array<unsigned char, kKeyBytes> expected{};
    std::copy_n(key.begin(), std::min(key.size(), expected.size()), expected.begin());
    unsigned difference = key.size() == attempt.size() ? 0U : 1U;
    for (std::size_t i = 0; i < kKeyBytes; ++i) {
      const volatile unsigned char bits = padded[i] ^ expected[i];
      difference |= bits;
    }
    difference |= key.empty() || key.size() > kKeyBytes ? 1U : 0U;
    matches |= difference == 0 ? 1U : 0U;
  }
  return matches != 0;
}

}  // namespace helios::protocol
