#include "gpu/quantise.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <random>

#include "gpu/file_blocks.hpp"

namespace helios::gpu {

namespace {

/// 256 values whose parts of 32 differ in range and place.
std::vector<float> some_values(unsigned seed, float middle) {
  std::mt19937 random(seed);
  std::vector<float> x(256);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const float span = 0.25F * static_cast<float>(i / 32 + 1);
    x[i] = middle + span * (static_cast<float>(random() >> 8U) * 0x1p-23F - 1.0F);
  }
  return x;
}

std::vector<float> there_and_back(const std::vector<float>& x) {
  std::vector<std::byte> block(block_bytes(DataType::q4_k));
  quantise_row(DataType::q4_k, x.data(), 256, block.data());
  std::vector<float> back(256);
  dequantise_row(DataType::q4_k, block.data(), 256, back.data());
  return back;
}

}  // namespace

TEST_CASE("Quantise: Q4_K keeps every value within half a step and the rounding of its scales", "[gpu]") {
  for (const float middle : {0.0F, 5.0F, -5.0F, 0.3F}) {
    for (unsigned seed = 0; seed < 20; ++seed) {
      const std::vector<float> x = some_values(seed, middle), back = there_and_back(x);
      float step_max = 0.0F, depth_max = 0.0F;
      std::array<float, 8> step{};
      for (std::size_t p = 0; p < 8; ++p) {
        const auto [low, high] = std::minmax_element(x.begin() + 32 * p, x.begin() + 32 * (p + 1));
        const float depth = std::max(-*low, 0.0F);
        step[p] = (std::max(*high, 0.0F) + depth) / 15.0F;
        step_max = std::max(step_max, step[p]);
        depth_max = std::max(depth_max, depth);
      }
      for (std::size_t i = 0; i < x.size(); ++i) {
        // Half a step; half a unit of the scale at 15 of them; half a unit of the minimum; fp16's rounding.
        const float limit = 0.5F * step[i / 32] + 8.0F * step_max / 63.0F + 0.5F * depth_max / 63.0F + 0.01F;
        if (!(std::abs(back[i] - x[i]) <= limit)) FAIL("seed " << seed << " value " << i);
      }
    }
  }
}

TEST_CASE("Quantise: Q4_K of zeros is zero, of a value that is not finite NaN", "[gpu]") {
  std::vector<float> x(256, 0.0F);
  CHECK(there_and_back(x) == x);
  x[77] = INFINITY;
  for (const float value : there_and_back(x)) CHECK(std::isnan(value));
}

}  // namespace helios::gpu
