#include <catch2/catch_test_macros.hpp>

#include "test/runtime/workload.hpp"

using namespace helios;
using namespace helios::test;
using namespace std::chrono_literals;

namespace {

enum class End { stop, destroy };

/// Runs `steps` events of the workload, then ends it. False: it was over before.
bool run_and_end(std::uint64_t seed, std::uint64_t steps, End end) {
  auto tally = std::make_shared<Tally>();
  bool cut = false;
  std::vector<Pending<Number>> rounds;
  {
    TestRuntime rt(seed);
    auto hub = build_workload(rt.system(), tally);
    for (int width : {2, 7}) rounds.push_back(rt.ask(hub, Round{width, {}}, 60s));
    std::uint64_t done = 0;
    while (done < steps && rt.executor().step()) ++done;
    cut = done == steps;
    if (end == End::stop) {
      rt.system().stop();
      rt.run_until_idle();
      for (const auto& round : rounds) {
        REQUIRE(round.ready());  // an answer or an error, never silence
        REQUIRE(round.answers() == 1);
      }
      REQUIRE(rt.scope().children() == 0);
    } else {
      rt.executor().drop_all();  // nothing runs any more: frames are destroyed where they wait
    }
  }
  REQUIRE(tally->alive == 0);
  REQUIRE(tally.use_count() == 1);  // every frame is gone
  for (const auto& round : rounds) REQUIRE(round.answers() <= 1);
  return cut;
}

}  // namespace

TEST_CASE("Teardown: stop and destruction after every n-th event leave nothing behind", "[runtime]") {
  for (const End end : {End::stop, End::destroy}) {
    for (std::uint64_t seed = 0; seed < 6; ++seed) {
      std::uint64_t steps = 0;
      while (run_and_end(seed, steps, end)) {
        ++steps;
        REQUIRE(steps < 5'000);
      }
      CHECK(steps > 50);
    }
  }
}
