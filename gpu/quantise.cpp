#include "gpu/quantise.hpp"

#include <algorithm>
#include <array>
#include <bit>
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

std::uint16_t nan_half() {
  return float_to_half(std::numeric_limits<float>::quiet_NaN());
}

struct Range {
  float low, high;
  bool finite;  // all of them; else low and high mean nothing
};
/// Of one block. Lanes that do not touch each other, so that compilers make vectors of them.
Range range_of(const float* x) {
  constexpr std::size_t kLanes = 8;
  std::array<float, kLanes> low{}, high{};
  std::array<std::uint32_t, kLanes> exponents{};  // the largest: all ones of infinity and NaN
  std::copy_n(x, kLanes, low.begin());
  std::copy_n(x, kLanes, high.begin());
  for (std::size_t k = 0; k < kBlock; k += kLanes) {
    for (std::size_t i = 0; i < kLanes; ++i) {
      const float value = x[k + i];
      low[i] = value < low[i] ? value : low[i];
      high[i] = value > high[i] ? value : high[i];
      exponents[i] = std::max(exponents[i], std::bit_cast<std::uint32_t>(value) & 0x7F800000U);
    }
  }
  return {*std::min_element(low.begin(), low.end()), *std::max_element(high.begin(), high.end()),
          *std::max_element(exponents.begin(), exponents.end()) != 0x7F800000U};
}

using Codes = std::array<std::int32_t, kBlock>;
/// (x - base) / step to the nearest of least..most; zeros when the step is no number above 0.
Codes codes_of(const float* x, float base, float step, float least, float most) {
  Codes codes{};
  if (!(step > 0.0F) || !std::isfinite(step)) return codes;
  for (std::size_t k = 0; k < kBlock; ++k) {
    float q = std::nearbyint((x[k] - base) / step);
    q = q < least ? least : q;
    codes[k] = static_cast<std::int32_t>(q > most ? most : q);
  }
  return codes;
}

void q8_block(const float* x, std::byte* out) {
  const Range range = range_of(x);
  const std::uint16_t d = range.finite
                              ? float_to_half(std::max(std::fabs(range.low), std::fabs(range.high)) / 127.0F)
                              : nan_half();
  store16(out, d);
  const Codes codes = codes_of(x, 0.0F, half_to_float(d), -127.0F, 127.0F);
  for (std::size_t k = 0; k < kBlock; ++k) out[2 + k] = static_cast<std::byte>(codes[k]);
}

/// Columns 0..15 in the low nibbles of 16 bytes, 16..31 in the high ones.
void q4_block(const float* x, std::byte* out) {
  const Range range = range_of(x);
  const std::uint16_t m = range.finite ? float_to_half(range.low) : nan_half();
  const float base = half_to_float(m);
  const std::uint16_t d =
      range.finite ? float_to_half(std::max(range.high - base, 0.0F) / 15.0F) : nan_half();
  store16(out, d);
  store16(out + 2, m);
  const Codes codes = codes_of(x, base, half_to_float(d), 0.0F, 15.0F);
  for (std::size_t k = 0; k < 16; ++k) out[4 + k] = static_cast<std::byte>(codes[k] | codes[k + 16] << 4);
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
  bool finite = true;
  for (std::size_t p = 0; p < kParts; ++p) {
    const Range range = range_of(x + kBlock * p);
    finite = finite && range.finite;
    depth[p] = std::max(-range.low, 0.0F);
    step[p] = (std::max(range.high, 0.0F) + depth[p]) / 15.0F;
  }
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
    const Codes codes = codes_of(x + kBlock * p, -min_unit * static_cast<float>(min[p]),
                                 unit * static_cast<float>(scale[p]), 0.0F, 15.0F);
    for (std::size_t k = 0; k < kBlock; ++k) {
      out[16 + kBlock * (p / 2) + k] |= static_cast<std::byte>(p % 2 == 0 ? codes[k] : codes[k] << 4);
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
