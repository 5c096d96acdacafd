#include "runtime/channel.hpp"

#include <catch2/catch_test_macros.hpp>
#include <string>
#include <vector>

#include "runtime/sleep.hpp"
#include "test/support/test_runtime.hpp"

using namespace helios;
using namespace helios::runtime;
using namespace std::chrono_literals;

namespace {

Task<> produce(Channel<std::string>* channel, char who, int n, std::vector<Errc>* errors) {
  for (int i = 0; i < n; ++i) {
    std::string item = who + std::to_string(i);
    if (Result<void> pushed = co_await channel->push(std::move(item)); !pushed)
      errors->push_back(pushed.error().code);
  }
}
Task<> consume(Channel<std::string>* channel, std::vector<std::string>* got, std::size_t* most) {
  while (std::optional<std::string> item = co_await channel->pop()) {
    *most = std::max(*most, channel->used() + item->size());
    got->push_back(std::move(*item));
    co_await yield_now();
  }
}
Task<Errc> push_late(Channel<std::string>* channel, Executor* executor) {
  std::string item = "late";
  const Result<void> pushed = co_await channel->push(std::move(item), executor->now() + 1s);
  co_return pushed ? Errc::internal : pushed.error().code;
}
Task<bool> pop_late(Channel<std::string>* channel, Executor* executor) {
  co_return (co_await channel->pop(executor->now() + 1s)).has_value();
}

}  // namespace

TEST_CASE("Channel: nothing lost, in order per producer, within its bytes", "[runtime]") {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    test::TestRuntime rt(seed);
    Channel<std::string> channel(7, [](const std::string& s) { return s.size(); });
    Strand a(rt.executor());
    Strand b(rt.executor());
    Strand c(rt.executor());
    std::vector<Errc> errors;
    std::vector<std::string> got;
    std::size_t most = 0;
    AsyncScope producers_a(a);
    AsyncScope producers_b(b);
    AsyncScope consumer(c);
    CHECK(producers_a.spawn(produce(&channel, 'a', 30, &errors)).has_value());
    CHECK(producers_b.spawn(produce(&channel, 'b', 30, &errors)).has_value());
    CHECK(consumer.spawn(consume(&channel, &got, &most)).has_value());
    rt.run_until_idle();
    channel.close();
    rt.run_until_idle();
    CHECK(consumer.children() == 0);
    CHECK(errors.empty());
    CHECK(got.size() == 60);
    CHECK(most <= 7 + 3);
    for (const char who : {'a', 'b'}) {
      int next = 0;
      for (const std::string& item : got) {
        if (item[0] == who) REQUIRE(item == who + std::to_string(next++));
      }
    }
  }
}

TEST_CASE("Channel: full, closed and too large are told apart; deadlines end waits", "[runtime]") {
  test::TestRuntime rt;
  Channel<std::string> channel(4, [](const std::string& s) { return s.size(); });
  CHECK_FALSE(rt.run(pop_late(&channel, &rt.executor())));
  std::string item = "abc";
  CHECK(channel.try_push(item).has_value());
  item = "de";
  CHECK(channel.try_push(item).error().code == Errc::busy);
  CHECK(item == "de");
  CHECK(channel.try_push(std::string("too long")).error().code == Errc::too_long);
  CHECK(rt.run(push_late(&channel, &rt.executor())) == Errc::deadline_exceeded);
  CHECK(channel.used() == 3);

  std::vector<Errc> errors;
  Strand strand(rt.executor());
  AsyncScope scope(strand);
  CHECK(scope.spawn(produce(&channel, 'x', 1, &errors)).has_value());  // two bytes: has to wait
  rt.executor().run_ready();
  CHECK(scope.children() == 1);
  channel.close();
  rt.run_until_idle();
  CHECK(errors == std::vector{Errc::dropped});
  CHECK(channel.try_push(item).error().code == Errc::dropped);
  CHECK(channel.try_pop() == "abc");
  CHECK_FALSE(channel.try_pop());
}

TEST_CASE("Channel: a woken producer that is destroyed hands its place on", "[runtime]") {
  test::TestRuntime rt;
  Channel<std::string> channel(2, [](const std::string& s) { return s.size(); });
  CHECK(channel.try_push(std::string("zz")).has_value());
  std::vector<Errc> errors;
  Strand strand(rt.executor());
  auto first = std::make_unique<AsyncScope>(strand);
  AsyncScope second(strand);
  CHECK(first->spawn(produce(&channel, 'a', 1, &errors)).has_value());
  rt.executor().run_ready();
  CHECK(second.spawn(produce(&channel, 'b', 1, &errors)).has_value());
  rt.executor().run_ready();
  CHECK(channel.try_pop() == "zz");  // wakes the first producer
  first.reset();                     // destroyed before it runs
  rt.run_until_idle();
  CHECK(second.children() == 0);
  CHECK(channel.try_pop() == "b0");
}
