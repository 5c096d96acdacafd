#include "gpu/virtual_device.hpp"

#include <catch2/catch_test_macros.hpp>
#include <cstdio>
#include <vector>
#include "test/gpu/result_text.hpp"

#include "runtime/sim_executor.hpp"

namespace helios::gpu {

using namespace std::chrono_literals;

TEST_CASE("VirtualDevice: programs take their virtual time and compute by the reference", "[gpu]") {
  runtime::SimExecutor executor(3);
  const auto device =
      VirtualDevice::create(
          executor, {.arena_bytes = 4096, .cost = [](const CommandList& list) { return list.size() * 2ms; }})
          .value();
  const auto stream = device->create_stream(StreamKind::compute).value();
  std::vector<float> x{1.0F};
  const Op doubling = AddRows{.x = x.data(), .y = x.data(), .rows = 1, .cols = 1};
  const auto start = executor.now();
  REQUIRE(stream->launch({doubling, doubling}));
  REQUIRE(stream->launch({doubling}));
  const Event event = stream->record();
  CHECK(x[0] == 1.0F);
  CHECK_FALSE(event.done());
  executor.run_until_idle();
  CHECK(event.status());
  CHECK(x[0] == 8.0F);
  CHECK(executor.now() - start == 6ms);
  CHECK(device->programs_run() == 2);
}

TEST_CASE("VirtualDevice: scripted faults, and an order by events", "[gpu]") {
  runtime::SimExecutor executor(3);
  const auto device =
      VirtualDevice::create(executor,
                            {.arena_bytes = 4096, .fail_program = 2, .fail_copy = 1, .fail_reserve = 1})
          .value();
  CHECK(device->budget().reserve(64, Use::kv).error().code == Errc::out_of_memory);
  CHECK(device->budget().reserve(64, Use::kv));
  const auto a = device->create_stream(StreamKind::compute).value();
  const auto b = device->create_stream(StreamKind::copy).value();
  REQUIRE(a->launch({}));
  const Event first = a->record();
  b->wait(first);
  REQUIRE(b->launch({}));
  const Event second = b->record();
  const Event third = b->record();
  second.on_complete([first](const Result<void>&) { CHECK(first.done()); });
  executor.run_until_idle();
  CHECK(first.status());
  CHECK(second.status().error().code == Errc::device_fault);
  CHECK(third.status());

  auto file = FileReader::open(HELIOS_SOURCE_DIR "/CMakeLists.txt").value();
  std::vector<float> out(4);
  const LoadRequest request{
      .file = file, .pieces = {{0, 16, DataType::f32, 1, 4, reinterpret_cast<std::byte*>(out.data()), true}}};
  const Copy faulted = device->copy_engine().start(request).value();
  const Copy good = device->copy_engine().start(request).value();
  executor.run_until_idle();
  CHECK(faulted.event().status().error().code == Errc::io_error);
  CHECK(good.event().status());
  CHECK(device->copies_run() == 2);
}

}  // namespace helios::gpu
