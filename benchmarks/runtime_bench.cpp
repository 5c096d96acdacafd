// The actor runtime beside CAF in one run: ping-pong latency, message rate 1-to-1 and 4-to-1.
//
// Both sides do the same: plain values, an actor per sender and receiver, two worker threads, and a window of
// messages in flight per sender (CAF's mailboxes are unbounded; the window keeps both from measuring memory).
// Rounds alternate between the two, so that a slow moment of the machine meets both; ratios are taken round
// by round.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "runtime/actor_system.hpp"
#include "runtime/latch.hpp"
#include "runtime/sync_wait.hpp"
#include "runtime/thread_executor.hpp"

#ifdef HELIOS_HAVE_CAF
#include "benchmarks/runtime_bench_caf.hpp"
#endif

namespace {

using namespace helios;
using namespace helios::runtime;

constexpr int kThreads = 2;
constexpr int kWindow = 256;  // messages per sender without a receipt

struct Options {
  int rounds = 9;
  int ping_pongs = 50'000;
  int messages = 400'000;  // of all senders together
};

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// --- ping-pong: ask, answer, ask again ---
struct Pong {
  int n = 0;
};
struct Ping {
  int n = 0;
  Reply<Pong> reply;
};
struct Start {
  int count = 0;
  Reply<> reply;
};

class Server final : public Actor<Server, Ping> {
 public:
  Task<> on(Ping msg) {
    msg.reply.send(Pong{msg.n});
    co_return;
  }
};

class Client final : public Actor<Client, Start> {
 public:
  explicit Client(Address<Ping> server) : server_(std::move(server)) {}
  Task<> on(Start msg) {
    for (int i = 0; i < msg.count; ++i) {
      Ping ping{.n = i, .reply = {}};
      const Result<Pong> pong = co_await server_.ask(std::move(ping), std::chrono::seconds(10));
      if (!pong || pong->n != i) co_return msg.reply.fail(fail(Errc::internal, "wrong pong")), void();
    }
    msg.reply.send();
  }

 private:
  Address<Ping> server_;
};

/// Microseconds for one ask and its answer.
double ping_pong_us(int count) {
  ThreadExecutor executor(kThreads);
  ActorSystem system(executor);
  auto server = system.spawn<Server>({.name = "server"});
  auto client = system.spawn<Client>({.name = "client"}, Address<Ping>(server));
  const auto start = Clock::now();
  const Result<void> done =
      sync_wait(executor, client.address().ask(Start{.count = count, .reply = {}}, std::chrono::minutes(2)));
  const double seconds = seconds_since(start);
  if (!done) std::abort();
  return seconds * 1e6 / count;
}

// --- message rate: senders tell, the receiver gives a receipt for each half window ---
struct Receipt {};
struct Note {
  int sender = 0;
  int number = 0;
};
struct Begin {};

class Receiver;
class Sender;

struct Board {
  std::vector<Address<Receipt, Begin>> senders;
  Latch done;
  int expected = 0;
};

class Receiver final : public Actor<Receiver, Note> {
 public:
  explicit Receiver(std::shared_ptr<Board> board) : board_(std::move(board)), seen_(16) {}
  Task<> on(Note note) {
    if (note.number != seen_[static_cast<std::size_t>(note.sender)]++) std::abort();  // order per sender
    if ((note.number + 1) % (kWindow / 2) == 0) {
      (void)board_->senders[static_cast<std::size_t>(note.sender)].tell(Receipt{});
    }
    if (++count_ == board_->expected) board_->done.open();
    co_return;
  }

 private:
  std::shared_ptr<Board> board_;
  std::vector<int> seen_;
  int count_ = 0;
};

class Sender final : public Actor<Sender, Receipt, Begin> {
 public:
  Sender(Address<Note> to, int index, int count) : to_(std::move(to)), index_(index), count_(count) {}
  Task<> on(Begin) {
    burst(kWindow);
    co_return;
  }
  Task<> on(Receipt) {
    burst(kWindow / 2);
    co_return;
  }

 private:
  void burst(int n) {
    for (; n > 0 && sent_ < count_; --n) {
      if (!to_.tell(Note{index_, sent_++})) std::abort();
    }
  }
  Address<Note> to_;
  int index_, count_;
  int sent_ = 0;
};

/// Million messages a second, all senders together.
double rate_m(int senders, int messages) {
  const int each = messages / senders;
  ThreadExecutor executor(kThreads);
  ActorSystem system(executor);
  auto board = std::make_shared<Board>();
  board->expected = each * senders;
  auto receiver = system.spawn<Receiver>({.name = "receiver", .mailbox_capacity = 4 * kWindow}, board);
  for (int i = 0; i < senders; ++i) {
    auto sender = system.spawn<Sender>({.name = "sender"}, Address<Note>(receiver), i, each);
    board->senders.push_back(sender);
  }
  const auto start = Clock::now();
  for (const auto& sender : board->senders) (void)sender.tell(Begin{});
  board->done.wait();
  const double seconds = seconds_since(start);
  system.stop();
  return board->expected / seconds / 1e6;
}

double quantile(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(q * static_cast<double>(values.size() - 1) + 0.5)];
}

/// `better`: +1 when more is better (a rate), -1 when less is (a latency). The ratio is ours to theirs, above
/// 1 when ours is better.
template <class Ours, class Peer>
void compare(const char* name, const char* unit, int count, int better, const Options& options, Ours ours,
             Peer peer) {
  std::vector<double> mine, theirs, ratios;
  (void)ours();  // warm-up
  (void)peer();
  for (int round = 0; round < options.rounds; ++round) {
    mine.push_back(ours());
    theirs.push_back(peer());
    if (theirs.back() > 0)
      ratios.push_back(better > 0 ? mine.back() / theirs.back() : theirs.back() / mine.back());
  }
  std::printf(
      "{\"case\":\"%s\",\"unit\":\"%s\",\"messages\":%d,\"rounds\":%d,\"threads\":%d,\"helios_median\":%.4g,"
      "\"helios_min\":%.4g,\"helios_max\":%.4g",
      name, unit, count, options.rounds, kThreads, quantile(mine, 0.5), quantile(mine, 0), quantile(mine, 1));
  if (!ratios.empty()) {
    std::printf(
        ",\"caf_median\":%.4g,\"caf_min\":%.4g,\"caf_max\":%.4g,\"ratio_median\":%.3g,\"ratio_p10\":%.3g,"
        "\"ratio_p90\":%.3g",
        quantile(theirs, 0.5), quantile(theirs, 0), quantile(theirs, 1), quantile(ratios, 0.5),
        quantile(ratios, 0.1), quantile(ratios, 0.9));
  }
  std::printf("}\n");
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--smoke") == 0) {
      options = {.rounds = 1, .ping_pongs = 500, .messages = 4'000};
    } else if (std::strcmp(argv[i], "--rounds") == 0 && i + 1 < argc) {
      options.rounds = std::clamp(std::atoi(argv[++i]), 1, 1000);
    } else {
      std::fprintf(stderr, "usage: runtime_bench [--smoke] [--rounds N]\n");
      return 2;
    }
  }
#ifdef HELIOS_HAVE_CAF
  const auto caf_ping_pong = [](int n) { return helios::bench::caf_ping_pong_us(n, kThreads); };
  const auto caf_rate = [](int senders, int n) {
    return helios::bench::caf_rate_m(senders, n, kWindow, kThreads);
  };
#else
  std::fprintf(stderr, "built without CAF (libcaf-dev): no comparison\n");
  const auto caf_ping_pong = [](int) { return 0.0; };
  const auto caf_rate = [](int, int) { return 0.0; };
#endif
  compare(
      "ping_pong", "us_per_round_trip", options.ping_pongs, -1, options,
      [&] { return ping_pong_us(options.ping_pongs); }, [&] { return caf_ping_pong(options.ping_pongs); });
  for (const int senders : {1, 4}) {
    const std::string name = "rate_" + std::to_string(senders) + "_to_1";
    compare(
        name.c_str(), "million_messages_per_s", options.messages, +1, options,
        [&] { return rate_m(senders, options.messages); },
        [&] { return caf_rate(senders, options.messages); });
  }
  return 0;
}
