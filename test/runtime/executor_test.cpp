#include <atomic>
#include <catch2/catch_test_macros.hpp>
#include <string>
#include <vector>

#include "runtime/latch.hpp"
#include "runtime/one_shot.hpp"
#include "runtime/sim_executor.hpp"
#include "runtime/sleep.hpp"
#include "runtime/strand.hpp"
#include "runtime/sync_wait.hpp"
#include "runtime/thread_executor.hpp"

using namespace helios;
using namespace helios::runtime;
using namespace std::chrono_literals;

TEST_CASE("SimExecutor: timers fire in virtual time, cancelled ones never", "[runtime]") {
  SimExecutor sim(7);
  std::string log;
  const TimePoint start = sim.now();
  sim.post_at(start + 3ms, [&] { log += 'c'; });
  const TimerId cancelled = sim.post_at(start + 2ms, [&] { log += 'b'; });
  sim.post_at(start + 1ms, [&] { log += 'a'; });
  sim.cancel_timer(cancelled);
  CHECK(sim.post_at(kNever, [&] { log += 'x'; }) == 0);
  CHECK(sim.run_for(2ms) == 1);
  CHECK(log == "a");
  CHECK(sim.now() == start + 2ms);
  sim.run_until_idle();
  CHECK(log == "ac");
  CHECK(sim.now() == start + 3ms);
}

TEST_CASE("SimExecutor: the seed picks the order; the same seed picks the same", "[runtime]") {
  const auto run = [](std::uint64_t seed) {
    SimExecutor sim(seed);
    std::string order;
    for (char c = 'a'; c <= 'j'; ++c) {
      sim.post([&order, &sim, c] {
        order += c;
        sim.note(std::string(1, c));
      });
    }
    sim.run_until_idle();
    return std::pair(order, sim.trace());
  };
  CHECK(run(1) == run(1));
  CHECK(run(1).first != run(2).first);
  CHECK(run(1).second != run(2).second);
}

TEST_CASE("Strand: one at a time, in order, whatever the seed", "[runtime]") {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    SimExecutor sim(seed);
    Strand a(sim);
    Strand b(sim);
    std::vector<int> order;
    int in_b = 0;
    for (int i = 0; i < 20; ++i) {
      a.post([&, i] {
        CHECK(a.is_current());
        order.push_back(i);
      });
      b.post([&] { ++in_b; });
    }
    sim.run_until_idle();
    for (int i = 0; i < 20; ++i) REQUIRE(order[static_cast<std::size_t>(i)] == i);
    CHECK(in_b == 20);
    CHECK(current_executor() == nullptr);
  }
}

TEST_CASE("Strand: destruction drops what did not start", "[runtime]") {
  SimExecutor sim(1);
  auto held = std::make_shared<int>(0);
  {
    Strand strand(sim);
    strand.post([held] { ++*held; });
    strand.post_at(sim.now() + 1s, [held] { ++*held; });
  }
  sim.run_until_idle();
  CHECK(*held == 0);
  CHECK(held.use_count() == 1);
}

TEST_CASE("ThreadExecutor: jobs, timers, strands and stop", "[runtime]") {
  ThreadExecutor threads(3);
  Strand strand(threads);
  int unguarded = 0;  // the strand is its lock
  Latch done;
  for (int i = 0; i < 10'000; ++i) {
    strand.post([&, i] {
      ++unguarded;
      if (i == 9'999) done.open();
    });
  }
  REQUIRE(threads.wait(done));
  CHECK(unguarded == 10'000);

  std::atomic<bool> late{false};
  const TimerId timer = threads.post_at(threads.now() + 1h, [&] { late = true; });
  Latch rang;
  threads.post_at(threads.now() + 1ms, [&] { rang.open(); });
  REQUIRE(threads.wait(rang));
  threads.cancel_timer(timer);
  CHECK_FALSE(late);

  auto held = std::make_shared<int>(0);
  threads.post_at(threads.now() + 1h, [held] { ++*held; });
  threads.stop();
  threads.post([held] { ++*held; });
  CHECK(*held == 0);
  Latch never;
  CHECK_FALSE(threads.wait(never));
}

namespace {
Task<bool> timed_out(Executor* executor) {
  auto never = OneShot<Result<int>>::create();
  const TimePoint deadline = executor->now() + 5ms;
  const Result<int> got = co_await wait_until<int>(never, deadline);
  co_return !got && got.error().code == Errc::deadline_exceeded && executor->now() >= deadline;
}
Task<Errc> cancelled_sleep(Executor* executor, CancelToken token) {
  const Result<void> slept = co_await sleep_for(*executor, 1h, token);
  co_return slept ? Errc::internal : slept.error().code;
}
}  // namespace

TEST_CASE("Waits end by value, deadline or cancellation, on both executors", "[runtime]") {
  ThreadExecutor threads(2);
  SimExecutor sim(3);
  for (Executor* executor : {static_cast<Executor*>(&threads), static_cast<Executor*>(&sim)}) {
    CHECK(sync_wait(*executor, timed_out(executor)));
    CancelSource source;
    executor->post_at(executor->now() + 2ms, [&source] { source.cancel(); });
    CHECK(sync_wait(*executor, cancelled_sleep(executor, source.token())) == Errc::cancelled);
    CHECK(sync_wait(*executor, cancelled_sleep(executor, source.token())) == Errc::cancelled);  // already
  }
}
