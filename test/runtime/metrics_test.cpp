#include "runtime/metrics.hpp"

#include <catch2/catch_test_macros.hpp>
#include <stdexcept>
#include <string>

using namespace helios::runtime;

TEST_CASE("Registry: Prometheus text, sorted and escaped", "[runtime]") {
  Registry registry;
  registry.counter("b_total", {{"path", "a\"b\\c\n"}, {"code", "200"}}, "Requests").add(3);
  registry.counter("b_total", {{"code", "200"}, {"path", "a\"b\\c\n"}}).add();  // the same series
  registry.gauge("c").set(1.5);
  registry.gauge_callback("d", {}, [] { return 7.0; });
  Histogram& h = registry.histogram("a_seconds", {0.1, 1}, {{"m", "x"}});
  h.observe(0.1);
  h.observe(0.5);
  h.observe(9);
  CHECK(h.count() == 3);
  CHECK(registry.prometheus_text() ==
        "# TYPE a_seconds histogram\n"
        "a_seconds_bucket{m=\"x\",le=\"0.1\"} 1\n"
        "a_seconds_bucket{m=\"x\",le=\"1\"} 2\n"
        "a_seconds_bucket{m=\"x\",le=\"+Inf\"} 3\n"
        "a_seconds_sum{m=\"x\"} 9.6\n"
        "a_seconds_count{m=\"x\"} 3\n"
        "# HELP b_total Requests\n"
        "# TYPE b_total counter\n"
        "b_total{code=\"200\",path=\"a\\\"b\\\\c\\n\"} 4\n"
        "# TYPE c gauge\n"
        "c 1.5\n"
        "# TYPE d gauge\n"
        "d 7\n");
}

TEST_CASE("Registry: one name has one kind, and the number of series is bounded", "[runtime]") {
  Registry registry;
  registry.counter("x");
  CHECK_THROWS_AS(registry.gauge("x"), std::invalid_argument);
  for (std::size_t i = 0; i < Registry::kSeriesMax + 5; ++i)
    registry.gauge("g", {{"i", std::to_string(i)}}).set(1);
  CHECK(registry.prometheus_text().find("helios_metrics_refused_total 6\n") != std::string::npos);
}

TEST_CASE("exponential_bounds", "[runtime]") {
  CHECK(exponential_bounds(1, 2, 4) == std::vector<double>{1, 2, 4, 8});
}
