#include <catch2/catch_test_macros.hpp>
#include <set>

#include "test/runtime/workload.hpp"

using namespace helios;
using namespace helios::test;
using namespace std::chrono_literals;

namespace {

struct Outcome {
  std::uint64_t hash = 0;
  std::string trace;
  int asked = 0, answered = 0, values = 0, alive = 0;
};

Outcome run_seed(std::uint64_t seed) {
  auto tally = std::make_shared<Tally>();
  Outcome outcome;
  {
    TestRuntime rt(seed);
    auto hub = build_workload(rt.system(), tally);
    std::vector<Pending<Number>> rounds;
    for (int width : {1, 4, 9}) rounds.push_back(rt.ask(hub, Round{width, {}}, 60s));
    rt.run_until_idle();
    for (const auto& round : rounds) {
      REQUIRE(round.ready());
      REQUIRE(round.answers() == 1);
      REQUIRE(round.ok());
    }
    rt.system().stop();
    outcome.hash = rt.executor().trace_hash();
    outcome.trace = rt.executor().trace();
  }
  outcome.asked = tally->asked;
  outcome.answered = tally->answered;
  outcome.values = tally->values;
  outcome.alive = tally->alive;
  return outcome;
}

}  // namespace

TEST_CASE("Simulation: 1,000 seeds of ping, fan-out and failing children; the same seed repeats",
          "[runtime]") {
  std::set<std::uint64_t> hashes;
  int failures = 0;
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    const Outcome first = run_seed(seed);
    const Outcome second = run_seed(seed);
    REQUIRE(first.hash == second.hash);
    REQUIRE(first.trace == second.trace);
    REQUIRE(first.asked == 14);
    REQUIRE(first.answered == 14);
    REQUIRE(first.alive == 0);
    failures += first.asked - first.values;
    hashes.insert(first.hash);
  }
  CHECK(hashes.size() > 990);  // seeds do differ
  CHECK(failures > 0);         // and some asks were refused, dropped or late
}
