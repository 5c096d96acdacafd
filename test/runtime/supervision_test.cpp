#include "runtime/supervision.hpp"

#include <catch2/catch_test_macros.hpp>
#include <memory>
#include <stdexcept>

#include "runtime/sleep.hpp"
#include "test/support/test_runtime.hpp"

using namespace helios;
using namespace helios::runtime;
using namespace std::chrono_literals;

namespace {

struct Value {
  int n = 0;
};
struct Get {
  Reply<Value> reply;
};
struct Throw {
  Reply<> reply;
};
struct SpawnThrowing {};

struct Life {
  int built = 0;
  int destroyed = 0;
  int fail_builds = 0;  // so many constructions after the first throw
};

class Fragile final : public Actor<Fragile, Get, Throw, SpawnThrowing> {
 public:
  explicit Fragile(std::shared_ptr<Life> life) : life_(std::move(life)) {
    if (life_->built > 0 && life_->fail_builds > 0) {
      --life_->fail_builds;
      throw std::runtime_error("cannot start");
    }
    ++life_->built;
    (void)scope().spawn(wait_long(&executor(), scope().token(), life_));
  }
  ~Fragile() { ++life_->destroyed; }
  Task<> on(Get msg) {
    msg.reply.send(Value{++gets_});
    co_return;
  }
  Task<> on(Throw msg) {
    co_await yield_now();
    throw std::runtime_error("handler threw");
    msg.reply.send();
  }
  Task<> on(SpawnThrowing) {
    (void)scope().spawn(throwing());
    co_return;
  }

 private:
  static Task<> wait_long(Executor* executor, CancelToken token, std::shared_ptr<Life> life) {
    (void)co_await sleep_for(*executor, 100h, token);
    CHECK(life->destroyed < life->built);  // a child ends before its actor does
  }
  static Task<> throwing() {
    co_await yield_now();
    throw std::runtime_error("child threw");
  }
  std::shared_ptr<Life> life_;
  int gets_ = 0;
};

ActorOptions with(Supervision supervision) {
  return {.name = "fragile", .supervision = supervision};
}

}  // namespace

TEST_CASE("Supervision: restart keeps the mailbox, loses the state and the failed message", "[runtime]") {
  test::TestRuntime rt;
  auto life = std::make_shared<Life>();
  auto actor = rt.spawn<Fragile>(with(Supervision::restarting()), life);
  auto first = rt.ask(actor, Get{});
  rt.executor().run_for(1ms);
  CHECK(first.value().n == 1);
  auto failing = rt.ask(actor, Throw{});
  rt.executor().run_for(1ms);
  auto queued = rt.ask(actor, Get{});
  rt.executor().run_for(1ms);
  CHECK(failing.failed_with(Errc::dropped));
  CHECK_FALSE(queued.ready());  // within the back-off
  rt.executor().run_for(20ms);
  CHECK(queued.value().n == 1);  // answered by the new one
  CHECK(life->built == 2);
  CHECK(life->destroyed == 1);
  REQUIRE(rt.failures().size() == 1);
  CHECK(rt.failures()[0].actor == "fragile");
  CHECK(rt.failures()[0].message == "handler threw");
  CHECK(rt.metrics().prometheus_text().find("helios_actor_restarts_total{actor=\"fragile\"} 1\n") !=
        std::string::npos);
}

TEST_CASE("Supervision: back-off doubles, and too many failures in the window stop the actor", "[runtime]") {
  test::TestRuntime rt;
  auto life = std::make_shared<Life>();
  Supervision rule = Supervision::restarting();
  rule.restarts_max = 3;
  auto actor = rt.spawn<Fragile>(with(rule), life);
  std::vector<Duration> waits;
  for (int i = 0; i < 3; ++i) {
    const TimePoint before = rt.now();
    CHECK(actor.address().tell(Throw{}).has_value());
    rt.executor().run_ready();
    auto next = rt.ask(actor, Get{});
    while (!next.ready()) REQUIRE(rt.executor().step());
    CHECK(next.ok());
    waits.push_back(rt.now() - before);
  }
  CHECK(waits == std::vector<Duration>{10ms, 20ms, 40ms});
  CHECK(actor.address().tell(Throw{}).has_value());
  rt.executor().run_ready();
  auto pending = rt.ask(actor, Get{});
  rt.executor().run_for(1s);
  CHECK(pending.failed_with(Errc::dropped));
  CHECK(actor.stopped());
  CHECK(life->built == 4);
  CHECK(life->destroyed == 4);
}

TEST_CASE("Supervision: failures far apart never stop the actor", "[runtime]") {
  test::TestRuntime rt;
  auto life = std::make_shared<Life>();
  Supervision rule = Supervision::restarting();
  rule.restarts_max = 1;
  auto actor = rt.spawn<Fragile>(with(rule), life);
  for (int i = 0; i < 10; ++i) {
    CHECK(actor.address().tell(Throw{}).has_value());
    rt.executor().run_for(2min);
  }
  CHECK_FALSE(actor.stopped());
  CHECK(life->built == 11);
}

TEST_CASE("Supervision: a constructor that throws while restarting counts as a failure", "[runtime]") {
  test::TestRuntime rt;
  auto life = std::make_shared<Life>();
  life->fail_builds = 2;
  auto actor = rt.spawn<Fragile>(with(Supervision::restarting()), life);
  CHECK(actor.address().tell(Throw{}).has_value());
  auto next = rt.ask(actor, Get{});
  rt.executor().run_for(1s);
  CHECK(next.ok());
  CHECK(life->built == 2);
  CHECK(rt.failures().size() == 3);
}

TEST_CASE("Supervision: stop answers what is queued; a failing child counts as its actor", "[runtime]") {
  for (const bool child : {false, true}) {
    test::TestRuntime rt;
    auto life = std::make_shared<Life>();
    auto actor = rt.spawn<Fragile>(with({}), life);
    if (child) {
      CHECK(actor.address().tell(SpawnThrowing{}).has_value());
    } else {
      CHECK(actor.address().tell(Throw{}).has_value());
    }
    rt.executor().run_for(1s);
    auto late = rt.ask(actor, Get{});
    rt.executor().run_for(1s);
    CHECK(late.failed_with(Errc::dropped));
    CHECK(actor.stopped());
    CHECK(life->destroyed == 1);
    REQUIRE(rt.failures().size() == 1);
    CHECK(rt.failures()[0].message == (child ? "child threw" : "handler threw"));
    rt.system().stop();
  }
}

TEST_CASE("Supervision: escalation stops the whole system", "[runtime]") {
  test::TestRuntime rt;
  auto life = std::make_shared<Life>();
  bool told = false;
  rt.system().on_escalation([&told] { told = true; });
  auto bystander = rt.spawn<Fragile>(with({}), life);
  auto actor = rt.spawn<Fragile>(with(Supervision::escalating()), life);
  CHECK(actor.address().tell(Throw{}).has_value());
  rt.executor().run_for(1s);
  CHECK(told);
  CHECK(rt.system().escalated());
  CHECK(bystander.stopped());
  CHECK(life->destroyed == 2);
  rt.system().stop();
}

TEST_CASE("Supervision: restart needs arguments that can be copied", "[runtime]") {
  struct Nothing {};
  class Owner final : public Actor<Owner, Nothing> {
   public:
    explicit Owner(std::unique_ptr<int>) {}
    Task<> on(Nothing) { co_return; }
  };
  test::TestRuntime rt;
  CHECK_THROWS_AS(rt.spawn<Owner>(with(Supervision::restarting()), std::make_unique<int>(1)),
                  std::invalid_argument);
  auto owner = rt.spawn<Owner>(with({}), std::make_unique<int>(1));
  CHECK(owner.address().tell(Nothing{}).has_value());
}
