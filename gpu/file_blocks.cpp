#include "gpu/file_blocks.hpp"

#include <cassert>
#include <cstring>

#include "gpu/half.hpp"

namespace helios::gpu {

namespace {

std::uint16_t load16(const std::byte* at) {
  std::uint16_t value;
  std::memcpy(&value, at, 2);
  return value;
}
float half_at(const std::byte* at) {
  return half_to_float(load16(at));
}
std::uint8_t u8(std::byte value) {
  return std::to_integer<std::uint8_t>(value);
}

void set_scales(FileBlock& out, float scale, float minimum) {
  out.scale[0] = out.scale[1] = scale;
  out.minimum = minimum;
  out.offset = 0;
}

void split_nibbles(const std::byte* bytes, FileBlock& out) {
  for (std::size_t k = 0; k < 16; ++k) {
    out.q[k] = u8(bytes[k] & std::byte{15});
    out.q[k + 16] = u8(bytes[k] >> 4);
  }
}

void add_fifth_bits(const std::byte* at, FileBlock& out) {
  std::uint32_t bits;
  std::memcpy(&bits, at, 4);
  for (std::size_t k = 0; k < 32; ++k)
    out.q[k] = static_cast<std::uint8_t>(out.q[k] | ((bits >> k & 1U) << 4));
}

/// The 6-bit scale and minimum of block `b` of 8. Those of 4..7 keep their high bits above the first four.
void k_scales(const std::byte* super, std::size_t b, FileBlock& out) {
  const std::byte* s = super + 4;
  const std::byte six{63}, four{15};
  const auto top = [](std::byte v) { return (v >> 6) << 4; };
  const std::byte scale = b < 4 ? s[b] & six : (s[b + 4] & four) | top(s[b - 4]);
  const std::byte minimum = b < 4 ? s[b + 4] & six : (s[b + 4] >> 4) | top(s[b]);
  set_scales(out, half_at(super) * static_cast<float>(u8(scale)),
             -(half_at(super + 2) * static_cast<float>(u8(minimum))));
}

void read_q4_k(const std::byte* super, std::size_t b, const std::byte* nibbles, FileBlock& out) {
  k_scales(super, b, out);
  const std::byte* bytes = nibbles + 32 * (b / 2);
  for (std::size_t k = 0; k < 32; ++k) out.q[k] = u8(b % 2 == 0 ? bytes[k] & std::byte{15} : bytes[k] >> 4);
}

void read_q6_k(const std::byte* super, std::size_t b, FileBlock& out) {
  const std::size_t half = b / 4, quarter = b % 4;
  const std::byte* low = super + 64 * half + 32 * (quarter % 2);
  const std::byte* high = super + 128 + 32 * half;
  for (std::size_t k = 0; k < 32; ++k) {
    const std::byte nibble = quarter < 2 ? low[k] & std::byte{15} : low[k] >> 4;
    out.q[k] = u8(nibble | ((high[k] >> static_cast<int>(2 * quarter)) & std::byte{3}) << 4);
  }
  const float d = half_at(super + 208);
  for (std::size_t i = 0; i < 2; ++i) {
    const auto scale = static_cast<std::int8_t>(u8(super[192 + 8 * half + 2 * quarter + i]));
    out.scale[i] = d * static_cast<float>(scale);
  }
  out.minimum = 0.0F;
  out.offset = 32;
}

void dequantise_block(const FileBlock& block, float* out) {
  for (std::size_t k = 0; k < 32; ++k) {
    const float value = block.scale[k / 16] * static_cast<float>(int{block.q[k]} - block.offset);
    out[k] = value + block.minimum;
  }
}

}  // namespace

FileBlock read_block(DataType type, const std::byte* row, std::int64_t index) {
  const std::int64_t blocks = block_elements(type) / 32;
  const std::byte* at = row + static_cast<std::size_t>(index / blocks) * block_bytes(type);
  const auto b = static_cast<std::size_t>(index % blocks);
  FileBlock out;
  switch (type) {
    case DataType::q8_0:
      for (std::size_t k = 0; k < 32; ++k) out.q[k] = u8(at[2 + k] ^ std::byte{0x80});
      set_scales(out, half_at(at), 0.0F);
      out.offset = 128;
      return out;
    case DataType::q4_0:
      split_nibbles(at + 2, out);
      set_scales(out, half_at(at), -8.0F * half_at(at));
      return out;
    case DataType::q4_1:
      split_nibbles(at + 4, out);
      set_scales(out, half_at(at), half_at(at + 2));
      return out;
    case DataType::q5_0:
      split_nibbles(at + 6, out);
      add_fifth_bits(at + 2, out);
      set_scales(out, half_at(at), -16.0F * half_at(at));
      return out;
    case DataType::q5_1:
      split_nibbles(at + 8, out);
      add_fifth_bits(at + 4, out);
      set_scales(out, half_at(at), half_at(at + 2));
      return out;
    case DataType::q4_k:
      read_q4_k(at, b, at + 16, out);
      return out;
    case DataType::q5_k:
      read_q4_k(at, b, at + 48, out);
      for (std::size_t k = 0; k < 32; ++k)
        out.q[k] = static_cast<std::uint8_t>(out.q[k] | (u8(at[16 + k]) >> b & 1) << 4);
      return out;
    case DataType::q6_k:
      read_q6_k(at, b, out);
      return out;
    default:
      assert(false && "not a block type");
      return {};
  }
}

void dequantise_row(DataType type, const std::byte* row, std::int64_t cols, float* out) {
  if (is_quantised(type)) {
    for (std::int64_t b = 0; b < cols / 32; ++b) dequantise_block(read_block(type, row, b), out + 32 * b);
    return;
  }
  if (type == DataType::f32) {
    std::memcpy(out, row, static_cast<std::size_t>(cols) * 4);
    return;
  }
  for (std::int64_t c = 0; c < cols; ++c) {
    const std::uint16_t bits = load16(row + 2 * c);
    out[c] = type == DataType::f16 ? half_to_float(bits) : bfloat_to_float(bits);
  }
}

}  // namespace helios::gpu
