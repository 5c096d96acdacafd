#include "gpu/stream.hpp"

#include <catch2/catch_test_macros.hpp>
#include <vector>
#include "test/gpu/result_text.hpp"

#include "gpu/host_device.hpp"
#include "runtime/async_scope.hpp"
#include "runtime/sim_executor.hpp"
#include "runtime/strand.hpp"

namespace helios::gpu {

using namespace std::chrono_literals;

namespace {

std::unique_ptr<HostDevice> make_device(Kernels kernels = Kernels::fast, std::string isa = {}) {
  return HostDevice::create(
             {.arena_bytes = 1 << 20, .threads = 2, .kernels = kernels, .isa_limit = std::move(isa)})
      .value();
}

Op doubling(std::vector<float>& x) {
  return AddRows{.x = x.data(), .y = x.data(), .rows = static_cast<std::int64_t>(x.size()), .cols = 1};
}

}  // namespace

TEST_CASE("HostStream: programs run in order, events mark points in it", "[gpu]") {
  const auto device = make_device();
  const auto stream = device->create_stream(StreamKind::compute).value();
  std::vector<float> x(100, 1.0F);
  for (int i = 0; i < 5; ++i) REQUIRE(stream->launch({doubling(x), doubling(x)}));
  const Event event = stream->record();
  REQUIRE(event.wait_for(30s));
  CHECK(event.done());
  for (const float v : x) CHECK(v == 1024.0F);
}

TEST_CASE("HostStream: waits for an event of another stream, and is closed while it waits", "[gpu]") {
  const auto device = make_device();
  auto compute = device->create_stream(StreamKind::compute).value();
  const auto copy = device->create_stream(StreamKind::copy).value();
  std::vector<float> x(8, 1.0F);
  const Event gate;
  compute->wait(gate);
  REQUIRE(compute->launch({doubling(x)}));
  const Event after = compute->record();
  REQUIRE(copy->launch({doubling(x)}));
  REQUIRE(copy->record().wait_for(30s));
  CHECK_FALSE(after.done());
  CHECK(x[0] == 2.0F);
  CHECK(after.wait_for(1ms).error().code == Errc::deadline_exceeded);
  gate.complete({});
  REQUIRE(after.wait_for(30s));
  CHECK(x[7] == 4.0F);

  const Event never;
  compute->wait(never);
  const Event dropped = compute->record();
  compute.reset();
  CHECK(dropped.status().error().code == Errc::dropped);
}

TEST_CASE("HostStream: refuses bad ops and more than its bound", "[gpu]") {
  const auto device = make_device();
  const auto stream = device->create_stream(StreamKind::compute).value();
  CHECK(stream->launch({AddRows{.rows = 1, .cols = 0}}).error().code == Errc::bad_request);
  const Event gate;
  stream->wait(gate);
  Result<void> launched;
  for (std::size_t i = 0; i <= Stream::kMaxQueued && launched; ++i) launched = stream->launch({});
  CHECK(launched.error().code == Errc::busy);
  gate.complete({});
  CHECK(stream->record().wait_for(30s));
}

TEST_CASE("Event: callbacks run once, before or after completion; the first outcome counts", "[gpu]") {
  const Event event;
  int calls = 0;
  const auto count = [&calls](const Result<void>& status) { calls += status ? 100 : 1; };
  event.on_complete(count);
  event.complete(fail(Errc::cancelled, "no"));
  event.complete({});
  event.on_complete(count);
  CHECK(calls == 2);
  CHECK(event.status().error().code == Errc::cancelled);
}

TEST_CASE("Event: a coroutine resumes on its strand, or at its deadline", "[gpu]") {
  runtime::SimExecutor executor(1);
  const Event soon, never;
  std::vector<int> order;
  runtime::Strand strand(executor);
  runtime::AsyncScope scope(strand);
  auto first = [](runtime::Executor* on, Event event, std::vector<int>* out) -> runtime::Task<> {
    const Result<void> status = co_await event.completed(*on, on->now() + 50ms);
    out->push_back(status ? 1 : -1);
  }(&executor, soon, &order);
  auto second = [](runtime::Executor* on, Event event, std::vector<int>* out) -> runtime::Task<> {
    const Result<void> status = co_await event.completed(*on, on->now() + 50ms);
    out->push_back(status.error().code == Errc::deadline_exceeded ? 2 : -2);
  }(&executor, never, &order);
  REQUIRE(scope.spawn(std::move(first)));
  REQUIRE(scope.spawn(std::move(second)));
  executor.post_at(executor.now() + 10ms, [soon] { soon.complete({}); });
  executor.run_until_idle();
  CHECK(order == std::vector<int>{1, 2});
}

TEST_CASE("HostDevice: options are checked, sets can be forced", "[gpu]") {
  CHECK(HostDevice::create({.arena_bytes = 4096, .threads = 0}).error().code == Errc::bad_request);
  CHECK(HostDevice::create({.arena_bytes = 4096, .isa_limit = "mmx"}).error().code == Errc::bad_request);
  CHECK(make_device(Kernels::fast, "sse4")->isa() == "sse4");
  CHECK(make_device(Kernels::reference)->isa() == "reference");
}

}  // namespace helios::gpu
