#include "apps/latency_stats.hpp"

#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>

using helios::apps::LatencySummary;
using helios::apps::summarize;

TEST_CASE("percentiles interpolate between the closest ranks", "[apps]") {
  const LatencySummary s = summarize({4, 1, 3, 2, 5});
  CHECK(s.count == 5);
  CHECK(s.mean == Catch::Approx(3));
  CHECK(s.median == Catch::Approx(3));
  CHECK(s.p90 == Catch::Approx(4.6));
  CHECK(s.p99 == Catch::Approx(4.96));
}

TEST_CASE("one sample is every percentile, none is zero", "[apps]") {
  CHECK(summarize({7}).p99 == Catch::Approx(7));
  CHECK(summarize({}).count == 0);
  CHECK(summarize({}).mean == 0);
}
