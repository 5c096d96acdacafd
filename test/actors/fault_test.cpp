#include "test/actors/rig.hpp"

namespace helios::test {
namespace {

using namespace std::chrono_literals;
using actors::FinishReason;

TEST_CASE("faults: a failed step fails its requests with a clear error, later ones are served", "[actors]") {
  RigOptions options;
  options.device.fail_program = 6;
  Rig rig(std::move(options));
  auto a = rig.start(request_of(4, 1, 30));
  auto b = rig.start(request_of(4, 2, 30));
  rig.settle();
  for (const auto& out : {a, b}) {
    REQUIRE(out->finishes == 1);
    CHECK(out->finish.reason == FinishReason::error);
    REQUIRE(out->finish.error);
    CHECK(out->finish.error->code == Errc::device_fault);
    CHECK_FALSE(out->finish.error->message.empty());
  }
  const Outcome later = rig.run(request_of(4, 3, 5));
  CHECK((later.refused || later.finishes == 1));
  rig.settle();
  rig.check_balanced();
}

TEST_CASE("faults: a copy that fails at start is said by wait_ready and by every request", "[actors]") {
  RigOptions options;
  options.device.fail_copy = 2;
  Rig rig(std::move(options));
  REQUIRE(rig.start_error);
  CHECK(rig.start_error->code == Errc::io_error);
  const Outcome out = rig.run(request_of(4, 1, 5));
  REQUIRE(out.refused);
  CHECK(out.refused->code == Errc::io_error);
  CHECK_FALSE(rig.model_stats().error.empty());
}

TEST_CASE("faults: a load that fails while serving leaves the old depth serving", "[actors]") {
  RigOptions options{.exit_layer = 2};
  options.device.fail_copy = 5;  // globals, two layers, the first new layer; then this one
  Rig rig(std::move(options));
  REQUIRE_FALSE(rig.start_error);
  auto out = rig.start(request_of(4, 1, 60));
  rig.run_until([&] { return out->last_seq >= 5; });
  const auto depth = rig.server->set_depth("", rig.model_stats().layers, 10s);
  REQUIRE_FALSE(depth);
  CHECK(depth.error().code == Errc::io_error);
  rig.settle();
  CHECK(out->finish.reason == FinishReason::length);
  CHECK(out->finish.usage.exit_histogram == std::map<int, int>{{2, 60}});
  CHECK(rig.model_stats().resident == 2);  // what was loaded in vain is gone
  const auto again = rig.server->set_depth("", rig.model_stats().layers, 10s);
  REQUIRE(again);
  CHECK(again->resident == rig.model_stats().layers);
  rig.check_balanced();
}

TEST_CASE("faults: a shallower depth cancels the load of a deeper one", "[actors]") {
  RigOptions options{.exit_layer = 2};
  options.device.copy_bytes_per_second = 1e5;
  Rig rig(std::move(options));
  REQUIRE_FALSE(rig.start_error);
  const int layers = rig.model_stats().layers;
  auto set = [&](int layer) {
    actors::SetDepth message;
    message.layer = layer;
    auto state = runtime::Reply<actors::Depth>::State::create();
    message.reply = runtime::Reply<actors::Depth>(state);
    REQUIRE(rig.server->router().tell(std::move(message)));
    return state;
  };
  auto deeper = set(layers);
  rig.sim.run_for(1ms);
  auto shallower = set(1);
  rig.settle();
  const auto first = deeper->try_take();
  REQUIRE(first);
  CHECK(first->error().code == Errc::cancelled);
  const auto second = shallower->try_take();
  REQUIRE(second);
  CHECK(*second);
  CHECK(rig.model_stats().depth == 1);
  CHECK(rig.model_stats().resident == 1);
}

TEST_CASE("faults: a step that never ends is a device fault, not a hang", "[actors]") {
  RigOptions options;
  options.device.cost = [n = 0](const gpu::CommandList&) mutable -> runtime::Duration {
    return ++n == 5 ? runtime::Duration(24h) : runtime::Duration(1ms);
  };
  options.tweak = [](actors::ServerOptions& o) { o.step_deadline = 500ms; };
  Rig rig(std::move(options));
  auto out = rig.start(request_of(4, 1, 30));
  rig.run_until([&] { return out->finishes > 0; });
  CHECK(out->finish.reason == FinishReason::error);
  CHECK(out->finish.error->code == Errc::device_fault);
  const Outcome later = rig.run(request_of(4, 2, 3));
  REQUIRE(later.refused);
  CHECK(later.refused->code == Errc::device_fault);
}

TEST_CASE("faults: a server that cannot hold its model says so", "[actors]") {
  Rig rig(RigOptions{.arena_bytes = 4096});
  REQUIRE(rig.start_error);
  CHECK(rig.start_error->code == Errc::out_of_memory);
}

}  // namespace
}  // namespace helios::test
