#include "actors/policy/learn_then_test.hpp"

#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <random>

namespace helios::actors::policy {

TEST_CASE("the Hoeffding-Bentkus p-value has its known values", "[actors]") {
  // No loss at all: (1 - delta)^n.
  CHECK(std::abs(hoeffding_bentkus_p(0.0, 10, 0.2) - std::pow(0.8, 10)) < 1e-12);
  CHECK(hoeffding_bentkus_p(0.2, 10, 0.2) == 1.0);  // at the bound nothing speaks against it
  CHECK(hoeffding_bentkus_p(0.9, 10, 0.2) == 1.0);
  // 1 of 100, delta 0.1: Hoeffding exp(-100 h(0.01, 0.1)) is below e * P(Bin(100, 0.1) <= 1).
  const double h = 0.01 * std::log(0.1) + 0.99 * std::log(0.99 / 0.9);
  const double bentkus = std::exp(1.0) * (std::pow(0.9, 100) + 100 * 0.1 * std::pow(0.9, 99));
  CHECK(std::abs(hoeffding_bentkus_p(0.01, 100, 0.1) - std::min(std::exp(-100 * h), bentkus)) < 1e-12);
  CHECK(std::abs(smallest_certifiable(150, 0.05) - (1 - std::pow(0.05, 1.0 / 150))) < 1e-9);
}

TEST_CASE("the last passing threshold is kept, not the first that fails", "[actors]") {
  // 200 prompts of two tokens: at 0.9 all agree, at 0.5 none does. Whatever is at or below 0.5 fails, 0.51 is
  // the last that passes.
  const std::vector<std::vector<JudgedToken>> prompts(200, {{0.9F, true}, {0.5F, false}});
  const CertifiedThreshold found = learn_then_test(prompts, 0.1, 0.05);
  REQUIRE(found.threshold);
  CHECK(std::abs(*found.threshold - 0.51) < 1e-9);
  CHECK(found.share == 0.5);
  CHECK(found.agreement == 1.0);
}

TEST_CASE("nothing is certified by too few prompts, by none, or where even the surest tokens are wrong",
          "[actors]") {
  const std::vector<std::vector<JudgedToken>> few(5, {{0.9F, true}});
  CHECK_FALSE(learn_then_test(few, 0.01, 0.05).threshold);
  CHECK_FALSE(learn_then_test({}, 0.1, 0.05).threshold);
  const std::vector<std::vector<JudgedToken>> wrong(200, {{1.0F, false}});
  CHECK_FALSE(learn_then_test(wrong, 0.1, 0.05).threshold);
}

TEST_CASE("in 10,000 draws the certified threshold breaks its bound at most epsilon of the time",
          "[actors]") {
  // A token is right with probability equal to 0.7 + 0.3 * confidence, confidence uniform: the risk at
  // threshold t is the integral of 0.3 * (1 - c) over c in [t, 1] = 0.15 * (1 - t)^2, so delta 0.05 is
  // reached at t = 1 - sqrt(1/3).
  constexpr double kDelta = 0.05, kEpsilon = 0.05;
  const double limit = 1 - std::sqrt(kDelta / 0.15);
  std::mt19937 random(7);
  std::uniform_real_distribution<float> uniform(0.0F, 1.0F);
  constexpr int kDraws = 10000;
  int broken = 0, useful = 0;
  for (int draw = 0; draw < kDraws; ++draw) {
    std::vector<std::vector<JudgedToken>> prompts(100);
    for (auto& prompt : prompts) {
      const float confidence = uniform(random);
      prompt.push_back({confidence, uniform(random) < 0.7F + 0.3F * confidence});
    }
    const auto found = learn_then_test(prompts, kDelta, kEpsilon, 0.05).threshold;
    if (found && *found < limit - 1e-9) ++broken;
    if (found && *found < 0.9) ++useful;
  }
  CHECK(broken <= kDraws * kEpsilon);
  CHECK(useful > kDraws / 2);  // a rule that never leaves would pass the line above
}

}  // namespace helios::actors::policy
