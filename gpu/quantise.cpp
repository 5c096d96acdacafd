#include "gpu/quantise.hpp"

#include <algorithm>
#include <array>
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

bool all_finite(const float* x, std::size_t count = kBlock) {
  return std::all_of(x, x + count, [](float v) { return std::isfinite(v); });
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

constexpr std::size_t kParts = 8;  // of a Q4_K block, 32 weights each: d * scale * q - dmin * min

/// Whole numbers 0..63 in six bits each, as file_blocks.cpp reads them.
void pack_scales(const std::array<unsigned, kParts>& scale, const std::array<unsigned, kParts>& min,
                 std::byte* out) {
  for (std::size_t p = 0; p < 4; ++p) {
    out[p] = static_cast<std::byte>(scale[p] | (scale[p + 4] >> 4U) << 6U);
    out[p + 4] = static_cast<std::byte>(min[p] | (min[p + 4] >> 4U) << 6U);
    out[p + 8] = static_cast<std::byte>((scale[p + 4] & 15U) | (min[p + 4] & 15U) << 4U);
  }
}

/// value / unit to the nearest of 0..63.
unsigned six_bits(float value, float unit) {
  return unit > 0.0F ? static_cast<unsigned>(std::clamp(std::nearbyint(value / unit), 0.0F, 63.0F)) : 0;
}

void q4_k_block(const float* x, std::byte* out) {
  std::array<float, kParts> step{}, depth{};  // of a part: its range / 15, and how far it reaches below 0
  for (std::size_t p = 0; p < kParts; ++p) {
    const auto [low, high] = std::minmax_element(x + kBlock * p, x + kBlock * (p + 1));
    depth[p] = std::max(-*low, 0.0F);
    step[p] = (std::max(*high, 0.0F) + depth[p]) / 15.0F;
  }
  const bool finite = all_finite(x, kBlock * kParts);
  const auto unit_of = [&](const std::array<float, kParts>& values) {
    return finite ? float_to_half(*std::max_element(values.begin(), values.end()) / 63.0F) : nan_half();
  };
  const std::uint16_t d = unit_of(step), dmin = unit_of(depth);
  const float unit = half_to_float(d), min_unit = half_to_float(dmin);
  std::array<unsigned, kParts> scale{}, min{};
  for (std::size_t p = 0; p < kParts && finite; ++p) {
    scale[p] = six_bits(step[p], unit);
    min[p] = six_bits(depth[p], min_unit);
  }
  store16(out, d);
  store16(out + 2, dmin);
  pack_scales(scale, min, out + 4);
  std::memset(out + 16, 0, kBlock * kParts / 2);
  for (std::size_t p = 0; p < kParts && finite; ++p) {
    const float width = unit * static_cast<float>(scale[p]), base = min_unit * static_cast<float>(min[p]);
    for (std::size_t k = 0; k < kBlock; ++k) {
      const float q = width > 0.0F ? std::nearbyint((x[kBlock * p + k] + base) / width) : 0.0F;
      const auto nibble = static_cast<unsigned>(std::clamp(q, 0.0F, 15.0F));
      out[16 + kBlock * (p / 2) + k] |= static_cast<std::byte>(p % 2 == 0 ? nibble : nibble << 4U);
    }
  }
}

}  // namespace

void quantise_row(DataType to, const float* row, std::int64_t cols, std::byte* out) {
  assert(can_quantise_to(to) && cols % block_elements(to) == 0);
  for (std::int64_t c = 0; c < cols; c += block_elements(to), out += block_bytes(to)) {
    if (to == DataType::q8_0) {
      q8_block(row + c, out);
    } else if (to == DataType::q4_k) {
      q4_k_block(row + c, out);
    } else {
      q4_block(row + c, out);
    }
  }
}

}  // namespace helios::gpu
