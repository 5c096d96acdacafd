#include <atomic>
#include <catch2/catch_test_macros.hpp>

#include "runtime/thread_executor.hpp"
#include "test/runtime/workload.hpp"

using namespace helios;
using namespace helios::runtime;
using namespace std::chrono_literals;

namespace {

struct Pong {
  int n = 0;
};
struct Ping {
  int n = 0;
  Reply<Pong> reply;
};
struct Quit {};

class Peer final : public Actor<Peer, Ping, Quit> {
 public:
  explicit Peer(std::shared_ptr<std::atomic<int>> handled) : handled_(std::move(handled)) {}
  Task<> on(Ping msg) {
    ++unguarded_;  // handlers exclude each other, or the thread sanitizer speaks
    ++*handled_;
    if (unguarded_ % 97 == 0) throw std::runtime_error("now and then");
    if (unguarded_ % 31 == 0)
      (void)scope().spawn(later(std::move(msg), &executor(), scope().token()));
    else
      msg.reply.send(Pong{msg.n});
    co_return;
  }
  Task<> on(Quit) { co_return; }

 private:
  static Task<> later(Ping msg, Executor* executor, CancelToken token) {
    (void)co_await sleep_for(*executor, 100us, token);
    msg.reply.send(Pong{msg.n});
  }
  std::shared_ptr<std::atomic<int>> handled_;
  int unguarded_ = 0;
};

struct Counts {
  std::atomic<int> ok{0}, failed{0};
};

Task<> client(std::vector<Address<Ping, Quit>> peers, int n, std::shared_ptr<Counts> counts) {
  for (int i = 0; i < n; ++i) {
    const auto& peer = peers[static_cast<std::size_t>(i) % peers.size()];
    (void)peer.tell_urgent(Quit{});
    const Duration timeout = i % 50 == 0 ? Duration(1us) : Duration(10s);  // some deadlines race the answer
    const Result<Pong> pong = co_await peer.ask(Ping{i, {}}, timeout);
    if (pong) {
      REQUIRE(pong->n == i);
      ++counts->ok;
    } else {
      ++counts->failed;
    }
  }
}

}  // namespace

TEST_CASE("Threads: asks, deadlines, restarts and stop race each other and every ask has one answer",
          "[runtime]") {
  constexpr int kClients = 6;
  constexpr int kAsks = 400;
  for (const bool stop_early : {false, true}) {
    ThreadExecutor executor(4);
    Registry metrics;
    Tracer tracer(1000);
    auto handled = std::make_shared<std::atomic<int>>(0);
    auto counts = std::make_shared<Counts>();
    ActorSystem system(executor, &metrics, &tracer, [](const ActorFailure&) {});
    std::vector<Address<Ping, Quit>> peers;
    for (int i = 0; i < 3; ++i) {
      ActorOptions options{
          .name = "peer" + std::to_string(i), .mailbox_capacity = 4, .when_full = WhenFull::wait};
      options.supervision = Supervision::restarting();
      options.supervision.restarts_max = 1'000'000;
      options.supervision.backoff_max = 1ms;
      options.supervision.backoff_first = 100us;
      peers.push_back(system.spawn<Peer>(options, handled));
    }
    std::vector<std::unique_ptr<Strand>> strands;
    std::vector<std::unique_ptr<AsyncScope>> scopes;
    for (int c = 0; c < kClients; ++c) {
      strands.push_back(std::make_unique<Strand>(executor));
      scopes.push_back(std::make_unique<AsyncScope>(*strands.back()));
      REQUIRE(scopes.back()->spawn(client(peers, kAsks, counts)).has_value());
    }
    if (stop_early) {
      while (counts->ok < 50) std::this_thread::yield();
      system.stop();
    }
    for (auto& scope : scopes) {
      Latch done;
      scope->when_empty([&done] { done.open(); });
      REQUIRE(executor.wait(done));
    }
    scopes.clear();
    system.stop();
    CHECK(counts->ok + counts->failed == kClients * kAsks);
    CHECK(counts->ok > 0);
    if (!stop_early) CHECK(counts->ok > kClients * kAsks / 2);
    CHECK(metrics.prometheus_text().find("helios_actor_messages_total") != std::string::npos);
  }
}

TEST_CASE("Threads: the seeded workload runs on the real executor too", "[runtime]") {
  auto tally = std::make_shared<test::Tally>();
  {
    ThreadExecutor executor(3);
    ActorSystem system(executor, nullptr, nullptr, [](const ActorFailure&) {});
    auto hub = test::build_workload(system, tally);
    for (int i = 0; i < 20; ++i) {
      CHECK(sync_wait(executor, hub.address().ask(test::Round{6, {}}, 60s)).has_value());
    }
    system.stop();
  }
  CHECK(tally->alive == 0);
  CHECK(tally->asked == tally->answered);
}
