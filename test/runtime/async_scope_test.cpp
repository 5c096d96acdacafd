#include "runtime/async_scope.hpp"

#include <catch2/catch_test_macros.hpp>
#include <stdexcept>

#include "runtime/sleep.hpp"
#include "test/support/test_runtime.hpp"

using namespace helios;
using namespace helios::runtime;
using namespace std::chrono_literals;

namespace {

Task<> count_after(Executor* executor, Duration wait, CancelToken token, std::shared_ptr<int> done) {
  if (co_await sleep_for(*executor, wait, token)) ++*done;
}
Task<> failing() {
  co_await yield_now();
  throw std::runtime_error("child");
}
Task<> join(AsyncScope* scope) {
  co_await scope->join();
}

}  // namespace

TEST_CASE("AsyncScope: join waits for all, request_stop ends them early", "[runtime]") {
  test::TestRuntime rt;
  Strand strand(rt.executor());
  AsyncScope scope(strand);
  auto done = std::make_shared<int>(0);
  for (int i = 0; i < 5; ++i)
    CHECK(scope.spawn(count_after(&rt.executor(), i * 1s, scope.token(), done)).has_value());
  rt.run(join(&scope));
  CHECK(*done == 5);
  CHECK(scope.children() == 0);

  CHECK(scope.spawn(count_after(&rt.executor(), 1h, scope.token(), done)).has_value());
  const TimePoint before = rt.now();
  scope.request_stop();
  rt.run(join(&scope));
  CHECK(*done == 5);
  CHECK(rt.now() == before);
}

TEST_CASE("AsyncScope: an exception of a child comes out of join, once", "[runtime]") {
  test::TestRuntime rt;
  Strand strand(rt.executor());
  AsyncScope scope(strand);
  CHECK(scope.spawn(failing()).has_value());
  CHECK_THROWS_AS(rt.run(join(&scope)), std::runtime_error);
  rt.run(join(&scope));
}

TEST_CASE("AsyncScope: bounded, and a refused or destroyed child frees what it held", "[runtime]") {
  test::TestRuntime rt;
  auto held = std::make_shared<int>(0);
  Strand strand(rt.executor());
  {
    AsyncScope scope(strand, 2);
    CHECK(scope.spawn(count_after(&rt.executor(), 1h, {}, held)).has_value());
    CHECK(scope.spawn(count_after(&rt.executor(), 1h, {}, held)).has_value());
    const Result<void> third = scope.spawn(count_after(&rt.executor(), 1h, {}, held));
    REQUIRE_FALSE(third.has_value());
    CHECK(third.error().code == Errc::busy);
    rt.executor().run_for(1s);
    CHECK(held.use_count() == 3);
    scope.destroy_children();
    CHECK(held.use_count() == 1);
    CHECK(scope.spawn(count_after(&rt.executor(), 1h, {}, held)).error().code == Errc::dropped);
  }
  rt.run_until_idle();
  CHECK(*held == 0);
}
