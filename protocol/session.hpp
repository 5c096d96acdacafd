#pragma once
// One client: what it sends becomes messages to Router, what comes back becomes frames. No sockets: bytes
// come in by calls and leave through a ByteSink, so that a simulation can drive it.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "actors/messages.hpp"
#include "actors/token_stream.hpp"
#include "protocol/generate_options.hpp"
#include "protocol/line_parser.hpp"
#include "protocol/reply_writer.hpp"
#include "runtime/async_scope.hpp"
#include "runtime/clock.hpp"
#include "runtime/executor.hpp"
#include "runtime/metrics.hpp"
#include "runtime/one_shot.hpp"
#include "runtime/strand.hpp"
#include "runtime/task.hpp"

namespace helios::protocol {

struct SessionOptions {
  ParserLimits parser;
  WriterLimits writer;
  std::vector<std::string> keys;    // any of them authenticates; none = no AUTH
  std::vector<std::string> models;  // for INFO, the first is the default
  std::string version = "0.1.0";
  std::size_t live_requests = 64;                   // unfinished commands at once
  std::size_t unread_bytes = std::size_t{1} << 20;  // queued output at which streams wait
  std::size_t stream_bytes = std::size_t{1} << 20;  // of one TokenStream
  std::size_t faulty_lines = 16;                    // in a row, then the connection ends
  int auth_tries = 3;
  std::chrono::milliseconds auth_deadline{10'000};   // from connect to a right key
  std::chrono::milliseconds input_deadline{30'000};  // for a whole line; for a pause within a payload
  std::chrono::milliseconds idle_deadline{std::chrono::minutes(10)};  // silence without a running command
  std::chrono::milliseconds write_deadline{10'000};                   // for one write to be taken by the peer
  std::chrono::milliseconds submit_deadline{30'000};                  // for Router to admit or refuse
  std::chrono::milliseconds load_deadline{std::chrono::minutes(5)};
  std::chrono::milliseconds stats_deadline{5'000};
};

/// Where a session's bytes go. Calls come from the session's strand.
class ByteSink {
 public:
  virtual ~ByteSink() = default;
  /// Sends all of `bytes`, then calls Session::written() on the session's strand; never from within this
  /// call. There is at most one write at a time.
  virtual void start_write(std::string bytes) = 0;
  /// Closes the connection. `reset`: drop what is under way and tell the peer so.
  virtual void close(bool reset) = 0;
  /// The last call: after close(), when every command of the session has ended. The session may be destroyed
  /// then, on any thread.
  virtual void done() = 0;
};

/// Counts of all sessions of a server; any of them may be null.
struct SessionMetrics {
  runtime::Counter* commands = nullptr;
  runtime::Counter* faults = nullptr;
  runtime::Counter* slow_readers = nullptr;
  runtime::Counter* foreign = nullptr;
};

/// The state of one connection. Create it by make_shared; every call is made on strand(). Keep it until the
/// sink's done().
class Session : public std::enable_shared_from_this<Session> {
 public:
  /// `executor` and `sink` must outlive the session; `peer` is for logs and labels.
  Session(SessionOptions options, actors::RouterAddress router, runtime::Executor& executor, ByteSink& sink,
          std::string peer, SessionMetrics metrics = {});
  ~Session();

  runtime::Strand& strand() { return strand_; }

  void start();  // greets
  void received(std::string_view bytes);
  void input_ended();   // half-close: running commands finish
  void written();       // the write under way is done
  void disconnected();  // reset or write error: everything is cancelled
  void drain();         // the server stops: no new work, close when idle
  void stop();          // now: everything is cancelled, nothing is awaited

  bool closed() const { return closed_; }
  bool idle() const { return live_.empty() && pending_ == 0; }

 private:
  using Time = runtime::TimePoint;

  /// One unfinished GEN or LOAD.
  struct Live {
    std::shared_ptr<actors::TokenStream> stream;  // null for LOAD
    actors::RequestId id = 0;                     // 0 until admitted
    bool cancel_wanted = false;
    bool cancel_sent = false;
    std::shared_ptr<runtime::OneShot<bool>> waiting;  // set wakes its pump, which found no room in the writer
  };

  void handle(Line line);
  void handle(const Fault& fault);
  void on_auth(const Line& line);
  void on_gen(const Line& line);
  void on_cancel(const Line& line);
  void on_load(const Line& line);
  void on_stats(const Line& line);
  bool admit_tag(const Line& line, std::string_view form);
  void refuse(std::string_view tag, const Error& error);

  runtime::Task<> generate(std::string tag, GenerateCommand command);
  runtime::Task<> load(std::string tag, std::string model, int layer);
  runtime::Task<> stats(std::string tag);
  runtime::Task<> send_cancel(actors::RequestId id, std::shared_ptr<actors::TokenStream> stream);

  void spawn(runtime::Task<> task);
  void cancel(Live& live);
  void cancel_all();
  void forget(const std::string& tag);
  void report_done();
  bool has_room(std::string_view tag) const;
  void wake_waiting();
  void flush();
  void end(std::string_view word, std::string_view text);  // one ERR, then close
  void close(bool reset);
  std::optional<Time> next_deadline() const;
  void arm();
  void on_timer();

  SessionOptions options_;
  actors::RouterAddress router_;
  runtime::Executor& executor_;
  ByteSink& sink_;
  std::string peer_;
  SessionMetrics metrics_;
  LineParser parser_;
  ReplyWriter writer_;
  std::map<std::string, Live> live_;  // by tag
  std::size_t pending_ = 0;           // unfinished STATS
  std::size_t faults_in_row_ = 0;
  int auth_tries_left_ = 0;
  bool authenticated_ = false;
  bool input_open_ = true;
  bool finishing_ = false;  // close when idle
  bool draining_ = false;
  bool bye_wanted_ = false;
  bool ending_ = false;  // the last ERR is queued
  bool writing_ = false;
  bool closed_ = false;
  bool done_ = false;
  Time started_{}, last_input_{}, line_started_{}, write_started_{};
  runtime::TimerId timer_ = 0;  // 0: none
  Time timer_at_{};
  runtime::Strand strand_;
  runtime::AsyncScope scope_;  // last, so destroyed first: its tasks use the members above
};

/// Whether `attempt` equals one of the keys, in a time that depends neither on where they differ nor on which
/// matches.
bool key_matches(const std::vector<std::string>& keys, std::string_view attempt);

}  // namespace helios::protocol
