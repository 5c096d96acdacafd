#include "apps/bench_workload.hpp"

#include <algorithm>
#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>

using namespace helios::apps;

TEST_CASE("prompts have the words asked for and repeat by seed", "[apps]") {
  const std::string prompt = bench_prompt(128, 1, 3);
  CHECK(std::count(prompt.begin(), prompt.end(), ' ') == 127);
  CHECK(prompt == bench_prompt(128, 1, 3));
  CHECK(prompt != bench_prompt(128, 1, 4));
  CHECK(prompt != bench_prompt(128, 2, 3));
}

TEST_CASE("Poisson arrivals are in order, seeded, and of the rate asked for", "[apps]") {
  const std::vector<double> arrivals = poisson_arrivals(50, 20000, 9);
  CHECK(std::is_sorted(arrivals.begin(), arrivals.end()));
  CHECK(arrivals == poisson_arrivals(50, 20000, 9));
  CHECK(20000 / arrivals.back() == Catch::Approx(50).epsilon(0.05));
}
