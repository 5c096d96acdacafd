#include "gpu/quantise.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstring>
#include <limits>

#include "gpu/half.hpp"

namespace helios::gpu {

namespace {

constexpr std::size_t kBlock = 32;

void store16(std::byte* at, std::uint16_t value) {
  std::memcpy(at, &value, 2);
}

bool all_finite(const float* x) {
  return std::all_of(x, x + kBlock, [](float v) { return std::isfinite(v); });
}

std::uint16_t nan_half() {
  return float_to_half(std::numeric_limits<float>::quiet_NaN());
}

void q8_block(const float* x, std::byte* out) {
  float amax = 0.0F;
  for (std::size_t k = 0; k < kBlock; ++k) amax = std::max(amax, std::fabs(x[k]));
  const std::uint16_t d = all_finite(x) ? float_to_half(amax / 127.0F) : nan_half();
  const float step = half_to_float(d);
  store16(out, d);
  for (std::size_t k = 0; k < kBlock; ++k) {
    const float q = step > 0.0F && std::isfinite(step) ? std::nearbyint(x[k] / step) : 0.0F;
    out[2 + k] = static_cast<std::byte>(static_cast<std::int8_t>(std::clamp(q, -127.0F, 127.0F)));
  }
}

/// Columns 0..15 in the low nibbles of 16 bytes, 16..31 in the high ones.
void q4_block(const float* x, std::byte* out) {
  const auto [low, high] = std::minmax_element(x, x + kBlock);
  const bool finite = all_finite(x);
  const std::uint16_t m = finite ? float_to_half(*low) : nan_half();
  const float base = half_to_float(m);
  const std::uint16_t d = finite ? float_to_half(std::max(*high - base, 0.0F) / 15.0F) : nan_half();
  const float step = half_to_float(d);
  store16(out, d);
  store16(out + 2, m);
  const auto nibble = [&](std::size_t k) {
    const float q = step > 0.0F && std::isfinite(step) ? std::nearbyint((x[k] - base) / step) : 0.0F;
    return static_cast<std::uint8_t>(std::clamp(q, 0.0F, 15.0F));
  };
  for (std::size_t k = 0; k < 16; ++k) out[4 + k] = static_cast<std::byte>(nibble(k) | nibble(k + 16) << 4);
}

}  // namespace

void quantise_row(DataType to, const float* row, std::int64_t cols, std::byte* out) {
  assert(can_quantise_to(to) && cols % static_cast<std::int64_t>(kBlock) == 0);
  for (std::int64_t c = 0; c < cols; c += static_cast<std::int64_t>(kBlock), out += block_bytes(to)) {
    if (to == DataType::q8_0) {
      q8_block(row + c, out);
    } else {
      q4_block(row + c, out);
    }
  }
}

}  // namespace helios::gpu
