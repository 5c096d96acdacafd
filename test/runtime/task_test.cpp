#include "runtime/task.hpp"

#include <catch2/catch_test_macros.hpp>
#include <memory>
#include <stdexcept>
#include <string>

#include "runtime/job.hpp"
#include "runtime/sleep.hpp"
#include "test/support/test_runtime.hpp"

using namespace helios;
using namespace helios::runtime;
using namespace std::chrono_literals;

namespace {

Task<int> one() {
  co_return 1;
}
Task<long> sum_of_ones(int n) {
  long sum = 0;
  for (int i = 0; i < n; ++i) sum += co_await one();
  co_return sum;
}
Task<int> deep(int n) {
  co_return n == 0 ? 0 : 1 + co_await deep(n - 1);
}
Task<std::string> throwing() {
  co_await yield_now();
  throw std::runtime_error("out of tea");
}
Task<std::string> catching() {
  try {
    co_return co_await throwing();
  } catch (const std::exception& e) {
    co_return std::string("caught ") + e.what();
  }
}
Task<> mark(std::shared_ptr<int> counter) {
  ++*counter;
  co_return;
}
Task<> hold(std::shared_ptr<int> what, Executor* executor) {
  co_await sleep_for(*executor, 1h);
  ++*what;
}

}  // namespace

TEST_CASE("Task: lazy, with values and exceptions", "[runtime]") {
  test::TestRuntime rt;
  CHECK(rt.run(one()) == 1);
  CHECK(rt.run(catching()) == "caught out of tea");
  CHECK_THROWS_AS(rt.run(throwing()), std::runtime_error);

  auto counter = std::make_shared<int>(0);
  {
    const Task<> unawaited = mark(counter);
    CHECK(counter.use_count() == 2);
  }
  CHECK(*counter == 0);
  CHECK(counter.use_count() == 1);
}

TEST_CASE("Task: long loops and deep chains use no stack", "[runtime]") {
  test::TestRuntime rt;
  CHECK(rt.run(sum_of_ones(1'000'000)) == 1'000'000);
  CHECK(rt.run(deep(20'000)) == 20'000);
}

TEST_CASE("sync_wait: a task that cannot end under simulation is reported and destroyed", "[runtime]") {
  test::TestRuntime rt;
  auto what = std::make_shared<int>(0);
  rt.run(hold(what, &rt.executor()));  // virtual: an hour passes at once
  CHECK(*what == 1);
  rt.executor().drop_all();
  CHECK_THROWS_AS(rt.run(hold(what, &rt.executor())), std::logic_error);
  CHECK(what.use_count() == 1);
}

TEST_CASE("Job: moves small and large callables, and destroys each once", "[runtime]") {
  auto token = std::make_shared<int>(0);
  struct Large {
    char bytes[256];
  };
  Job small([token] { ++*token; });
  Job large([token, big = Large{}] { *token += big.bytes[0] + 10; });
  Job moved(std::move(small));
  CHECK_FALSE(small);
  moved();
  large();
  CHECK(*token == 11);
  moved = std::move(large);
  CHECK(token.use_count() == 2);
  moved.reset();
  CHECK(token.use_count() == 1);
}
