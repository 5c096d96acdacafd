#include "gpu/file_blocks.hpp"

#include <cassert>
#include <cstring>

#include "gpu/half.hpp"

namespace helios::gpu {

namespace {

int byte_at(const std::byte* at, int index) { return std::to_integer<int>(at[index]); }
std::uint16_t load16(const std::byte* at) {
  std::uint16_t value;
  std::memcpy(&value, at, 2);
  return value;
}
std::uint32_t load32(const std::byte* at) {
  std::uint32_t value;
  std::memcpy(&value, at, 4);
  return value;
}

struct ScaleMin {
  int scale, min;  // 0..63
};
/// Part 0..7 of the 12 bytes that K types of 4 and 5 bits keep their scales in: six bits each of the first four parts' scales and
/// minimums; those of the last four have their low nibbles in bytes 8..11 and their high bits above the first ones'.
ScaleMin scale_min(const std::byte* packed, int part) {
  if (part < 4) return {byte_at(packed, part) & 63, byte_at(packed, part + 4) & 63};
  const int low = byte_at(packed, part + 4);
  return {(low & 15) | (byte_at(packed, part - 4) >> 6) << 4, (low >> 4) | (byte_at(packed, part) >> 6) << 4};
}

/// Number k (0..31) of 16 bytes of nibbles: 0..15 low, 16..31 high.
int nibble(const std::byte* nibbles, int k) {
  return k < 16 ? byte_at(nibbles, k) & 15 : byte_at(nibbles, k - 16) >> 4;
}

/// Number k of part `part` of 128 bytes of nibbles: each 32 bytes hold two parts, low and high.
int k_nibble(const std::byte* nibbles, int part, int k) {
  const int both = byte_at(nibbles, 32 * (part / 2) + k);
  return part % 2 == 0 ? both & 15 : both >> 4;
}

void q5(const std::byte* block, bool has_min, float* out) {
  const float d = half_to_float(load16(block));
  const float m = has_min ? half_to_float(load16(block + 2)) : -16.0F * d;
  const std::byte* bits = block + (has_min ? 4 : 2);
  const std::uint32_t fifth = load32(bits);
  for (int k = 0; k < 32; ++k) {
    const int q = nibble(bits + 4, k) | static_cast<int>(fifth >> k & 1U) << 4;
    out[k] = d * static_cast<float>(q) + m;
  }
}

void q45_k(const std::byte* block, bool five, float* out) {
  const float d = half_to_float(load16(block)), dmin = half_to_float(load16(block + 2));
  const std::byte* fifth = block + 16;
  const std::byte* nibbles = block + (five ? 48 : 16);
  for (int part = 0; part < 8; ++part) {
    const auto [scale, min] = scale_min(block + 4, part);
    for (int k = 0; k < 32; ++k) {
      int q = k_nibble(nibbles, part, k);
      if (five) q |= (byte_at(fifth, k) >> part & 1) << 4;
      out[32 * part + k] = d * static_cast<float>(scale) * static_cast<float>(q) - dmin * static_cast<float>(min);
    }
  }
}

void q6_k(const std::byte* block, float* out) {
  const float d = half_to_float(load16(block + 208));
  for (int half = 0; half < 2; ++half) {
    const std::byte* low = block + 64 * half;
    const std::byte* high = block + 128 + 32 * half;
    const std::byte* scales = block + 192 + 8 * half;
    for (int i = 0; i < 128; ++i) {
      const int quarter = i / 32, k = i % 32;
      const int four = byte_at(low, (quarter % 2) * 32 + k) >> (quarter / 2 * 4) & 15;
      const int q = (four | (byte_at(high, k) >> (2 * quarter) & 3) << 4) - 32;
      const auto scale = static_cast<std::int8_t>(byte_at(scales, i / 16));
      out[128 * half + i] = d * static_cast<float>(scale) * static_cast<float>(q);
    }
  }
}

}  // namespace

void dequantise_block(DataType type, const std::byte* block, float* out) {
  switch (type) {
    case DataType::q8_0:
      for (int k = 0; k < 32; ++k) {
        out[k] = half_to_float(load16(block)) * static_cast<float>(static_cast<std::int8_t>(byte_at(block, 2 + k)));
      }
      return;
    case DataType::q4_0:
      for (int k = 0; k < 32; ++k) out[k] = half_to_float(load16(block)) * static_cast<float>(nibble(block + 2, k) - 8);
      return;
    case DataType::q4_1:
      for (int k = 0; k < 32; ++k) {
        out[k] = half_to_float(load16(block)) * static_cast<float>(nibble(block + 4, k)) + half_to_float(load16(block + 2));
      }
      return;
    case DataType::q5_0:
      return q5(block, false, out);
    case DataType::q5_1:
      return q5(block, true, out);
    case DataType::q4_k:
      return q45_k(block, false, out);
    case DataType::q5_k:
      return q45_k(block, true, out);
    case DataType::q6_k:
      return q6_k(block, out);
    default:
      assert(false && "not a block type");
  }
}

Q4Part q4_k_part(const std::byte* block, int part) {
  const auto [scale, min] = scale_min(block + 4, part);
  Q4Part out;
  out.d = float_to_half(half_to_float(load16(block)) * static_cast<float>(scale));
  out.m = float_to_half(-half_to_float(load16(block + 2)) * static_cast<float>(min));
  for (int k = 0; k < 16; ++k) {
    out.nibbles[static_cast<std::size_t>(k)] =
        static_cast<std::byte>(k_nibble(block + 16, part, k) | k_nibble(block + 16, part, k + 16) << 4);
  }
  return out;
}

std::array<std::byte, 34> q5_0_as_q8_0(const std::byte* block) {
  std::array<std::byte, 34> out{block[0], block[1]};
  const std::uint32_t fifth = load32(block + 2);
  for (int k = 0; k < 32; ++k) {
    const int q = (nibble(block + 6, k) | static_cast<int>(fifth >> k & 1U) << 4) - 16;
    out[static_cast<std::size_t>(2 + k)] = static_cast<std::byte>(q);
  }
  return out;
}

}  // namespace helios::gpu
