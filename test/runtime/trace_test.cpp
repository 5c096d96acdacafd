#include "runtime/trace.hpp"

#include <boost/json.hpp>
#include <catch2/catch_test_macros.hpp>

using namespace helios::runtime;
using namespace std::chrono_literals;

TEST_CASE("Tracer: the ring keeps the newest events and writes valid Chrome JSON", "[runtime]") {
  TimePoint now{};
  Tracer tracer(3, [&now] { return now; });
  const TrackId copy = tracer.track("stream/copy");
  const TrackId actor = tracer.track("actor/Scheduler");
  CHECK(tracer.track("stream/copy") == copy);
  tracer.instant("lost", copy);
  {
    TraceSpan span(&tracer, "step", "de\"code\n", actor);
    span.args("\"rows\":3");
    now += 1500us;
  }
  tracer.complete("load", copy, now, now + 2ms);
  tracer.counter("depth", actor, 4);
  const TraceSpan off(nullptr, "x", "y", 0);
  CHECK(tracer.events() == 3);
  CHECK(tracer.dropped() == 1);

  const boost::json::value document = boost::json::parse(tracer.chrome_json());
  const auto& events = document.at("traceEvents").as_array();
  REQUIRE(events.size() == 2 + 2 + 3);
  CHECK(events[0].at("args").at("name").as_string() == "stream");
  const auto& span = events[4];
  CHECK(span.at("name").as_string() == "de\"code\n");
  CHECK(span.at("cat").as_string() == "step");
  CHECK(span.at("dur").to_number<double>() == 1500.0);
  CHECK(span.at("args").at("rows").to_number<int>() == 3);
  CHECK(events[5].at("cat").as_string() == "stream");
  CHECK(events[6].at("args").at("value").to_number<double>() == 4.0);
  CHECK(tracer.write_chrome_json("/no/such/folder/t.json").error().code == helios::Errc::io_error);
}
