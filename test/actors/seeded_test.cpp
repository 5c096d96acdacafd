#include <cstdlib>

#include "test/actors/rig.hpp"

namespace helios::test {
namespace {

using namespace std::chrono_literals;
using actors::FinishReason;

/// A workload that the seed decides: arrivals, lengths, cancels, loads up and down, a little memory, a fault
/// now and then. Returns the simulation's trace hash.
std::uint64_t run_seed(std::uint64_t seed) {
  CAPTURE(seed);
  RigOptions options{.seed = seed};
  if (seed % 3 == 0) options.exit_layer = 2;
  if (seed % 4 == 1) options.arena_bytes = tiny_arena_bytes(200);
  if (seed % 7 == 2) options.device.fail_program = 20 + static_cast<int>(seed % 30);
  options.device.compute = false;  // schedules and accounts are under test, not numbers
  options.device.copy_bytes_per_second = 5e6;
  Rig rig(std::move(options));
  REQUIRE_FALSE(rig.start_error);
  auto draw = [&](std::uint64_t below) { return rig.sim.random() % below; };
  std::vector<std::shared_ptr<Outcome>> outs;
  const std::size_t n = 4 + draw(9);
  for (std::size_t i = 0; i < n; ++i) {
    auto request =
        request_of(1 + static_cast<int>(draw(30)), static_cast<int>(i), 1 + static_cast<int>(draw(25)));
    if (draw(6) == 0) request.exit_layer = 1;
    if (draw(9) == 0) request.sampling.max_tokens = 5000;  // refused
    auto out = rig.start(std::move(request), std::chrono::microseconds(draw(60'000)));
    if (draw(4) == 0) rig.cancel_at(out, std::chrono::microseconds(draw(120'000)));
    outs.push_back(std::move(out));
  }
  if (seed % 3 == 0) {
    rig.sim.run_for(std::chrono::microseconds(draw(50'000)));
    actors::SetDepth deeper;
    deeper.layer = 3 + static_cast<int>(draw(2));
    REQUIRE(rig.server->router().tell(std::move(deeper)));
    rig.sim.run_for(std::chrono::microseconds(draw(30'000)));
    actors::SetDepth back;
    back.layer = 1 + static_cast<int>(draw(4));
    REQUIRE(rig.server->router().tell(std::move(back)));
  }
  rig.settle();
  for (const auto& out : outs) {
    if (out->refused) {
      CHECK(out->finishes == 0);
      CHECK(out->last_seq == 0);
      continue;
    }
    CHECK(out->finishes == 1);
    CHECK_FALSE(out->after_finish);
    CHECK_FALSE(out->gap);
    const auto& usage = out->finish.usage;
    CHECK(std::cmp_equal(usage.completion_tokens, out->ids().size()));
    int by_depth = 0;
    for (const auto& [depth, count] : usage.exit_histogram) by_depth += count;
    CHECK(by_depth == usage.completion_tokens);
    CHECK((out->finish.reason == FinishReason::error) == out->finish.error.has_value());
  }
  rig.check_balanced();
  return rig.sim.trace_hash();
}

TEST_CASE("seeded: one terminal event each and balanced pools, whatever the order", "[actors]") {
  const char* more = std::getenv("HELIOS_SEEDS");
  const std::uint64_t seeds = more != nullptr ? std::strtoull(more, nullptr, 10) : 200;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) run_seed(seed);
}

TEST_CASE("seeded: the same seed gives the same trace", "[actors]") {
  for (const std::uint64_t seed : {3U, 9U, 21U}) CHECK(run_seed(seed) == run_seed(seed));
}

TEST_CASE("seeded: stopped after every n-th event, nothing is left behind", "[actors]") {
  for (std::uint64_t n = 1; n < 3000; n += 41) {
    CAPTURE(n);
    Rig rig(RigOptions{.seed = n, .exit_layer = 2, .wait_ready = false});
    auto a = rig.start(request_of(9, 1, 12));
    auto b = rig.start(request_of(30, 2, 6), 2ms);
    actors::SetDepth deeper;
    deeper.layer = 4;
    REQUIRE(rig.server->router().tell(std::move(deeper)));
    for (std::uint64_t i = 0; i < n && rig.sim.step(); ++i) {
    }
    rig.system->stop();
    CHECK(a->finishes <= 1);
    CHECK(b->finishes <= 1);
  }
}

}  // namespace
}  // namespace helios::test
