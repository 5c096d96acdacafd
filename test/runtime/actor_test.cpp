#include "runtime/actor_system.hpp"

#include <catch2/catch_test_macros.hpp>

#include "runtime/channel.hpp"
#include "runtime/sim_executor.hpp"
#include "runtime/thread_executor.hpp"

using namespace helios;
using namespace helios::runtime;
using namespace std::chrono_literals;

namespace {

struct Add {
  int value;
};
struct Get {
  Reply<int> reply;
};
struct Boom {};

class Sum final : public Actor<Sum, Add, Get, Boom> {
 public:
  Task<> on(Add message) {
    co_await sleep_for(1ms);
    total_ = total_ * 31 + message.value;
  }
  Task<> on(Get message) {
    message.reply.send(total_);
    co_return;
  }
  Task<> on(Boom) {
    throw std::runtime_error("boom");
    co_return;
  }

 private:
  int total_ = 0;
};

/// Runs one coroutine on a strand of its own.
void run(Executor& executor, Task<> task) {
  AsyncScope scope(Strand::create(executor));
  scope.spawn(std::move(task));
  REQUIRE(executor.drive([&] { return scope.size() == 0; }, 10s));
}

int hash_of(int count) {
  int total = 0;
  for (int i = 0; i < count; ++i) total = total * 31 + i % 7;
  return total;
}

Task<> send_all(Address<Add, Get> to, int count, int* result) {
  for (int i = 0; i < count; ++i) {
    Result<void> sent = co_await to.send(Add{i % 7});
    CHECK(sent.has_value());
  }
  Result<int> total = co_await to.ask(Get{}, 5s);
  CHECK(total.has_value());
  *result = total.value_or(-1);
}

}  // namespace

TEST_CASE("messages of one sender arrive in order through a full mailbox", "[runtime]") {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    SimExecutor executor(seed);
    ActorSystem system(executor);
    auto sum = system.spawn<Sum>({.name = "sum", .mailbox_capacity = 3});
    int result = 0;
    run(executor, send_all(sum.address<Add, Get>(), 40, &result));
    CHECK(result == hash_of(40));
  }
}

TEST_CASE("the same on threads", "[runtime]") {
  ThreadExecutor executor(4);
  ActorSystem system(executor);
  auto sum = system.spawn<Sum>({.name = "sum", .mailbox_capacity = 3});
  int result = 0;
  run(executor, send_all(sum.address<Add, Get>(), 40, &result));
  CHECK(result == hash_of(40));
}

TEST_CASE("the same seed gives the same trace", "[runtime]") {
  const auto trace = [](std::uint64_t seed) {
    SimExecutor executor(seed);
    executor.keep_trace(true);
    ActorSystem system(executor);
    auto sum = system.spawn<Sum>({.name = "sum", .mailbox_capacity = 3});
    auto other = system.spawn<Sum>({.name = "other", .mailbox_capacity = 3});
    AsyncScope scope(Strand::create(executor));
    int a = 0, b = 0;
    scope.spawn(send_all(sum.address<Add, Get>(), 20, &a));
    scope.spawn(send_all(other.address<Add, Get>(), 20, &b));
    executor.run_until_idle();
    return executor.trace();
  };
  CHECK(trace(7) == trace(7));
  CHECK(trace(7) != trace(8));
}

TEST_CASE("a full mailbox refuses, its reserved places do not", "[runtime]") {
  SimExecutor executor(1);
  ActorSystem system(executor);
  auto sum = system.spawn<Sum>({.name = "sum", .mailbox_capacity = 2});
  auto to = sum.address<Add>();
  CHECK(to.tell(Add{1}).has_value());
  CHECK(to.tell(Add{1}).has_value());
  CHECK(to.tell(Add{1}).error().code == Errc::busy);
  CHECK(to.tell_urgent(Add{1}).has_value());
}

TEST_CASE("a failing handler answers pending asks, and restarts when told to", "[runtime]") {
  for (const Supervision supervision : {Supervision::stop, Supervision::restart, Supervision::escalate}) {
    SimExecutor executor(3);
    ActorSystem system(executor);
    auto sum = system.spawn_from<Sum>({.name = "sum", .supervision = supervision}, [] { return std::make_unique<Sum>(); });
    auto to = sum.address<Add, Get, Boom>();
    CHECK(to.tell(Boom{}).has_value());
    std::optional<Result<int>> answer;
    static constexpr auto ask = [](Address<Add, Get, Boom> address, std::optional<Result<int>>* out) -> Task<> {
      out->emplace(co_await address.ask(Get{}, 5s));
    };
    run(executor, ask(to, &answer));
    REQUIRE(answer.has_value());
    if (supervision == Supervision::restart) {
      CHECK(answer->value() == 0);
    } else {
      CHECK(answer->error().code == Errc::dropped);
      executor.run_until_idle();
      CHECK(sum.stopped());
      CHECK(system.failed() == (supervision == Supervision::escalate ? "sum: boom" : ""));
    }
  }
}

TEST_CASE("an ask has a deadline", "[runtime]") {
  SimExecutor executor(1);
  ActorSystem system(executor);
  auto sum = system.spawn<Sum>({.name = "sum"});
  auto to = sum.address<Add, Get>();
  for (int i = 0; i < 20; ++i) CHECK(to.tell(Add{i}).has_value());
  std::optional<Result<int>> answer;
  static constexpr auto ask = [](Address<Add, Get> address, std::optional<Result<int>>* out) -> Task<> {
    out->emplace(co_await address.ask(Get{}, 5ms));
  };
  run(executor, ask(to, &answer));
  CHECK(answer->error().code == Errc::deadline_exceeded);
}

TEST_CASE("everything can be torn down after every n-th event", "[runtime]") {
  for (std::uint64_t events = 0; events < 300; ++events) {
    SimExecutor executor(events);
    ActorSystem system(executor);
    auto sum = system.spawn<Sum>({.name = "sum", .mailbox_capacity = 2});
    Channel<int> channel(2);
    int result = 0;
    AsyncScope scope(Strand::create(executor));
    static constexpr auto writer = [](Channel<int>* to) -> Task<> {
      for (int i = 0; i < 10; ++i) (void)co_await to->push(i);
    };
    static constexpr auto reader = [](Channel<int>* from) -> Task<> {
      while (co_await from->pop()) co_await sleep_for(1ms);
    };
    scope.spawn(send_all(sum.address<Add, Get>(), 10, &result));
    scope.spawn(writer(&channel));
    scope.spawn(reader(&channel));
    for (std::uint64_t i = 0; i < events && executor.step(); ++i) {
    }
    if (events % 2 == 0) system.stop();
    scope.clear();
  }
}
