#include "runtime/actor.hpp"

#include <catch2/catch_test_macros.hpp>
#include <memory>
#include <string>
#include <vector>

#include "runtime/sleep.hpp"
#include "test/support/test_runtime.hpp"

using namespace helios;
using namespace helios::runtime;
using namespace std::chrono_literals;

namespace {

struct Sum {
  int value = 0;
};
struct Add {
  int n = 0;
  Reply<Sum> reply;
};
struct AddSlowly {
  int n = 0;
  Duration time{};
  Reply<Sum> reply;
};
struct Ignore {
  Reply<Sum> reply;
};
struct Flush {
  Reply<> reply;
};

class Adder final : public Actor<Adder, Add, AddSlowly, Ignore, Flush> {
 public:
  explicit Adder(std::shared_ptr<std::string> log) : log_(std::move(log)) {}
  Task<> on(Add msg) {
    *log_ += '<';
    sum_ += msg.n;
    co_await yield_now();
    *log_ += '>';
    msg.reply.send(Sum{sum_});
  }
  Task<> on(AddSlowly msg) {
    *log_ += '[';
    (void)co_await sleep_for(executor(), msg.time, scope().token());
    *log_ += ']';
    sum_ += msg.n;
    msg.reply.send(Sum{sum_});
  }
  Task<> on(Ignore) { co_return; }
  Task<> on(Flush msg) {
    msg.reply.send();
    co_return;
  }
  Task<> on_stop() {
    co_await yield_now();
    *log_ += "stop";
  }

 private:
  std::shared_ptr<std::string> log_;
  int sum_ = 0;
};

class Asker final : public Actor<Asker, Flush> {
 public:
  Asker(Address<Add> adder, std::shared_ptr<std::vector<int>> sums)
      : adder_(std::move(adder)), sums_(std::move(sums)) {}
  Task<> on(Flush msg) {
    Add add{.n = 1, .reply = {}};
    const Result<Sum> sum = co_await adder_.ask(std::move(add), 1s);
    CHECK(strand().is_current());  // resumed on its own strand
    sums_->push_back(sum ? sum->value : -1);
    msg.reply.send();
  }

 private:
  Address<Add> adder_;
  std::shared_ptr<std::vector<int>> sums_;
};

}  // namespace

TEST_CASE("Actor: handlers run one at a time, across their waits", "[runtime]") {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    test::TestRuntime rt(seed);
    auto log = std::make_shared<std::string>();
    auto adder = rt.spawn<Adder>({.name = "adder"}, log);
    auto first = rt.ask(adder, AddSlowly{.n = 1, .time = 5ms, .reply = {}});
    auto second = rt.ask(adder, Add{.n = 2, .reply = {}});
    auto third = rt.ask(adder, Add{.n = 4, .reply = {}});
    rt.run_until_idle();
    CHECK(std::max({first.value().value, second.value().value, third.value().value}) == 7);
    CHECK(log->find("<<") == std::string::npos);
    CHECK(log->find("[<") == std::string::npos);
    CHECK(log->find("<[") == std::string::npos);
  }
}

TEST_CASE("Actor: an ask ends by answer, drop, deadline or stop, exactly once", "[runtime]") {
  test::TestRuntime rt;
  auto log = std::make_shared<std::string>();
  auto adder = rt.spawn<Adder>({.name = "adder"}, log);
  auto ignored = rt.ask(adder, Ignore{});
  auto slow = rt.ask(adder, AddSlowly{.n = 1, .time = 2s, .reply = {}}, 1s);
  rt.run_until_idle();
  CHECK(ignored.failed_with(Errc::dropped));
  CHECK(slow.failed_with(Errc::deadline_exceeded));
  CHECK(slow.answers() == 1);
  auto after = rt.ask(adder, Add{.n = 0, .reply = {}});
  rt.run_until_idle();
  CHECK(after.value().value == 1);  // the late work still counted

  auto running = rt.ask(adder, AddSlowly{.n = 1, .time = 1h, .reply = {}}, 2h);
  auto queued = rt.ask(adder, Add{.n = 1, .reply = {}}, 2h);
  rt.executor().run_for(1s);
  CHECK_FALSE(running.ready());
  rt.system().stop();
  rt.run_until_idle();
  CHECK(running.value().value == 2);  // its sleep was cancelled, it answered
  CHECK(queued.failed_with(Errc::dropped));
  CHECK(*log == "[]<>[]stop");
  auto late = rt.ask(adder, Add{.n = 1, .reply = {}});
  rt.run_until_idle();
  CHECK(late.failed_with(Errc::dropped));
  CHECK(adder.stopped());
  CHECK(log.use_count() == 1);  // the actor is gone
}

TEST_CASE("Actor: asks between actors resume on the asker's strand", "[runtime]") {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    test::TestRuntime rt(seed);
    auto log = std::make_shared<std::string>();
    auto sums = std::make_shared<std::vector<int>>();
    auto adder = rt.spawn<Adder>({.name = "adder"}, log);
    auto asker = rt.spawn<Asker>({.name = "asker"}, adder.address<Add>(), sums);
    auto done = rt.ask(asker, Flush{});
    rt.run_until_idle();
    CHECK(done.ok());
    rt.system().stop();
    CHECK(*sums == std::vector{1});
  }
}

TEST_CASE("ActorSystem: stops in reverse order, and gives up on what does not end", "[runtime]") {
  struct Wait {};
  class Stubborn final : public Actor<Stubborn, Wait> {
   public:
    Stubborn(std::shared_ptr<std::string> log, char name) : log_(std::move(log)), name_(name) {}
    ~Stubborn() { *log_ += name_; }
    Task<> on(Wait) {
      auto never = OneShot<bool>::create();
      co_await never->wait();
      *log_ += "unreachable";
    }

   private:
    std::shared_ptr<std::string> log_;
    char name_;
  };
  test::TestRuntime rt;
  auto log = std::make_shared<std::string>();
  auto a = rt.spawn<Stubborn>({.name = "a"}, log, 'a');
  auto b = rt.spawn<Stubborn>({.name = "b", .stop_grace = 100ms}, log, 'b');
  CHECK(b.address().tell(Wait{}).has_value());
  rt.run_until_idle();
  const TimePoint before = rt.now();
  rt.system().stop();
  CHECK(*log == "ba");
  CHECK(rt.now() - before == 100ms);
  CHECK(a.address().tell(Wait{}).error().code == Errc::dropped);
  auto late = rt.spawn<Stubborn>({.name = "late"}, log, 'l');
  CHECK(late.stopped());
  CHECK(*log == "ba");
}

TEST_CASE("Address: empty ones and plain messages without an asker", "[runtime]") {
  test::TestRuntime rt;
  const Address<Add> empty;
  CHECK_FALSE(empty);
  CHECK(empty.tell(Add{}).error().code == Errc::dropped);
  CHECK(rt.run(empty.ask(Add{}, 1s)).error().code == Errc::dropped);
  auto log = std::make_shared<std::string>();
  auto adder = rt.spawn<Adder>({.name = "adder"}, log);
  CHECK(adder.address().tell(Add{.n = 3, .reply = {}}).has_value());
  CHECK(rt.run(adder.address().ask(Add{.n = 1, .reply = {}}, 1s)).value().value == 4);
  CHECK(rt.metrics().prometheus_text().find("helios_actor_messages_total{actor=\"adder\"} 2\n") !=
        std::string::npos);
}
