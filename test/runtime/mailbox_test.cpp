#include "runtime/mailbox.hpp"

#include <array>
#include <catch2/catch_test_macros.hpp>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "runtime/sleep.hpp"
#include "runtime/thread_executor.hpp"
#include "test/support/test_runtime.hpp"

using namespace helios;
using namespace helios::runtime;
using namespace std::chrono_literals;

namespace {

struct Item {
  int sender = 0;
  int number = 0;
};
struct Block {
  std::shared_ptr<OneShot<bool>> until;
};
struct Done {
  Reply<> reply;
};

struct Seen {
  std::array<int, 8> next{};
  int out_of_order = 0;
  int count = 0;
};

class Sink final : public Actor<Sink, Item, Block, Done> {
 public:
  explicit Sink(std::shared_ptr<Seen> seen) : seen_(std::move(seen)) {}
  Task<> on(Item item) {
    int& next = seen_->next[static_cast<std::size_t>(item.sender)];
    if (item.number != next) ++seen_->out_of_order;
    next = item.number + 1;
    ++seen_->count;
    co_return;
  }
  Task<> on(Block msg) { co_await msg.until->wait(); }
  Task<> on(Done msg) {
    msg.reply.send();
    co_return;
  }

 private:
  std::shared_ptr<Seen> seen_;
};

/// Sends from one strand, which the executor moves between its threads: it yields before every few messages.
Task<> send_many(Address<Item, Done> sink, int sender, int n,
                 std::shared_ptr<std::set<std::thread::id>> threads) {
  for (int i = 0; i < n; ++i) {
    if (i % 3 == 0) co_await yield_now();
    threads->insert(std::this_thread::get_id());
    if (i % 5 == 0 && sink.tell(Item{sender, i})) continue;
    const Result<void> sent = co_await sink.send(Item{sender, i});
    REQUIRE(sent.has_value());
  }
}

Task<Errc> send_late(Address<Item> sink, TimePoint deadline) {
  const Result<void> sent = co_await sink.send(Item{}, deadline);
  co_return sent ? Errc::internal : sent.error().code;
}
Task<> send_one(Address<Item> sink, int number, std::shared_ptr<std::vector<int>> sent) {
  if (co_await sink.send(Item{0, number})) sent->push_back(number);
}

}  // namespace

TEST_CASE("Mailbox: order per sender, for strands that change threads", "[runtime]") {
  constexpr int kSenders = 4;
  constexpr int kMessages = 4'000;
  ThreadExecutor executor(4);
  ActorSystem system(executor);
  auto seen = std::make_shared<Seen>();
  auto sink = system.spawn<Sink>({.name = "sink", .mailbox_capacity = 64, .when_full = WhenFull::wait}, seen);
  std::vector<std::shared_ptr<std::set<std::thread::id>>> threads;
  {
    std::vector<std::unique_ptr<Strand>> strands;
    std::vector<std::unique_ptr<AsyncScope>> scopes;
    for (int s = 0; s < kSenders; ++s) {
      threads.push_back(std::make_shared<std::set<std::thread::id>>());
      strands.push_back(std::make_unique<Strand>(executor));
      scopes.push_back(std::make_unique<AsyncScope>(*strands.back()));
      REQUIRE(scopes.back()->spawn(send_many(sink, s, kMessages, threads.back())).has_value());
    }
    for (auto& scope : scopes) {
      Latch done;
      scope->when_empty([&done] { done.open(); });
      REQUIRE(executor.wait(done));
    }
  }
  REQUIRE(sync_wait(executor, sink.address().ask(Done{}, 60s)).has_value());
  system.stop();
  CHECK(seen->count == kSenders * kMessages);
  CHECK(seen->out_of_order == 0);
  std::size_t most = 0;
  for (const auto& each : threads) most = std::max(most, each->size());
  CHECK(most > 1);  // some sender did change threads
}

TEST_CASE("Mailbox: order per sender under every seed", "[runtime]") {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    test::TestRuntime rt(seed);
    auto seen = std::make_shared<Seen>();
    auto sink = rt.spawn<Sink>({.name = "sink", .mailbox_capacity = 3}, seen);
    Strand a(rt.executor());
    Strand b(rt.executor());
    AsyncScope from_a(a);
    AsyncScope from_b(b);
    auto threads = std::make_shared<std::set<std::thread::id>>();
    REQUIRE(from_a.spawn(send_many(sink, 0, 60, threads)).has_value());
    REQUIRE(from_b.spawn(send_many(sink, 1, 60, threads)).has_value());
    rt.run_until_idle();
    REQUIRE(seen->count == 120);
    REQUIRE(seen->out_of_order == 0);
  }
}

TEST_CASE("Mailbox: bounded; urgent messages have their reserved places and do not overtake", "[runtime]") {
  test::TestRuntime rt;
  auto seen = std::make_shared<Seen>();
  auto sink = rt.spawn<Sink>({.name = "sink", .mailbox_capacity = 4, .mailbox_reserved = 2}, seen);
  const Address<Item, Block> address = sink;
  auto until = OneShot<bool>::create();
  REQUIRE(address.tell(Block{until}).has_value());
  rt.run_until_idle();  // the handler holds the actor
  for (int i = 0; i < 4; ++i) CHECK(address.tell(Item{0, i}).has_value());
  CHECK(address.tell(Item{0, 99}).error().code == Errc::busy);
  CHECK(rt.ask(sink, Done{}).ready() == false);
  CHECK(address.tell_urgent(Item{0, 4}).has_value());
  CHECK(address.tell_urgent(Item{0, 5}).has_value());
  CHECK(address.tell_urgent(Item{0, 99}).error().code == Errc::busy);
  CHECK(sink.depth() == 6);
  CHECK(rt.metrics().prometheus_text().find("helios_mailbox_depth{actor=\"sink\"} 6\n") != std::string::npos);
  until->set(true);
  rt.run_until_idle();
  CHECK(seen->count == 6);
  CHECK(seen->out_of_order == 0);
  CHECK(sink.depth() == 0);
  for (int i = 0; i < 4; ++i) CHECK(address.tell(Item{0, 6 + i}).has_value());  // all credit is back
  CHECK(address.tell(Item{0, 99}).error().code == Errc::busy);
}

TEST_CASE("Mailbox: senders wait in line; deadline, destruction and stop end their wait", "[runtime]") {
  test::TestRuntime rt;
  auto seen = std::make_shared<Seen>();
  auto sink = rt.spawn<Sink>({.name = "sink", .mailbox_capacity = 1}, seen);
  const Address<Item> items = sink;
  auto until = OneShot<bool>::create();
  REQUIRE(sink.address().tell(Block{until}).has_value());
  rt.run_until_idle();
  REQUIRE(items.tell(Item{0, 0}).has_value());
  CHECK(rt.run(send_late(items, rt.now() + 1s)) == Errc::deadline_exceeded);

  auto sent = std::make_shared<std::vector<int>>();
  Strand strand(rt.executor());
  auto leaving = std::make_unique<AsyncScope>(strand);
  AsyncScope scope(strand);
  REQUIRE(leaving->spawn(send_one(items, 77, sent)).has_value());
  rt.run_until_idle();
  for (int i = 1; i <= 3; ++i) REQUIRE(scope.spawn(send_one(items, i, sent)).has_value());
  rt.run_until_idle();
  CHECK(sent->empty());
  leaving.reset();
  until->set(true);
  rt.run_until_idle();
  CHECK(*sent == std::vector{1, 2, 3});
  CHECK(seen->count == 4);
  CHECK(seen->out_of_order == 0);

  auto again = OneShot<bool>::create();
  REQUIRE(sink.address().tell(Block{again}).has_value());
  rt.run_until_idle();
  REQUIRE(items.tell(Item{0, 4}).has_value());
  REQUIRE(scope.spawn(send_one(items, 5, sent)).has_value());
  rt.run_until_idle();
  CHECK(scope.children() == 1);
  rt.system().stop();
  rt.run_until_idle();
  CHECK(scope.children() == 0);  // dropped, not left waiting
  CHECK(sent->size() == 3);
}

TEST_CASE("Mailbox: what ask does when it is full is the actor's choice", "[runtime]") {
  for (const WhenFull policy : {WhenFull::refuse, WhenFull::wait}) {
    test::TestRuntime rt;
    auto seen = std::make_shared<Seen>();
    auto sink = rt.spawn<Sink>({.name = "sink", .mailbox_capacity = 1, .when_full = policy}, seen);
    auto until = OneShot<bool>::create();
    REQUIRE(sink.address().tell(Block{until}).has_value());
    rt.run_until_idle();
    REQUIRE(sink.address().tell(Item{0, 0}).has_value());
    auto asked = rt.ask(sink, Done{});
    rt.executor().run_ready();
    CHECK(asked.ready() == (policy == WhenFull::refuse));
    until->set(true);
    rt.run_until_idle();
    CHECK((policy == WhenFull::refuse ? asked.failed_with(Errc::busy) : asked.ok()));
  }
}
