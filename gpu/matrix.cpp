#include "gpu/matrix.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>

#include "gpu/file_blocks.hpp"
#include "gpu/half.hpp"
#include "gpu/quantise.hpp"

namespace helios::gpu {

namespace {

std::uint16_t load16(const std::byte* at) {
  std::uint16_t value;
  std::memcpy(&value, at, 2);
  return value;
}
void store16(std::byte* at, std::uint16_t value) {
  std::memcpy(at, &value, 2);
}

// One block of 32 columns of row r of a panel. GGUF's 4-bit blocks hold columns 0..15 in the low nibbles of
// 16 bytes and 16..31 in the high ones.
void pack_q8_block(const std::byte* block, std::byte* out, std::size_t r) {
  for (std::size_t k = 0; k < 32; ++k) out[64 * (k / 4) + 4 * r + k % 4] = block[2 + k] ^ std::byte{0x80};
  std::memcpy(out + 512 + 2 * r, block, 2);
}
void pack_q4_block(const std::byte* nibbles, std::uint16_t d, std::uint16_t m, std::byte* out,
                   std::size_t r) {
  const auto nibble = [nibbles](std::size_t k) {
    return k < 16 ? nibbles[k] & std::byte{15} : nibbles[k - 16] >> 4;
  };
  for (std::size_t j = 0; j < 4; ++j) {
    for (std::size_t i = 0; i < 4; ++i)
      out[64 * j + 4 * r + i] = nibble(8 * j + i) | nibble(8 * j + 4 + i) << 4;
  }
  store16(out + 256 + 2 * r, d);
  store16(out + 288 + 2 * r, m);
}

/// 32 columns of a file's block, as floats quantised again.
void pack_as_q8(DataType type, const std::byte* block, std::int64_t part, std::byte* panel, std::size_t r) {
  std::array<float, 256> values;
  dequantise_block(type, block, values.data());
  std::array<std::byte, 34> q8;
  quantise_row(DataType::q8_0, values.data() + 32 * part, 32, q8.data());
  pack_q8_block(q8.data(), panel, r);
}

void pack_part(DataType type, const std::byte* block, std::int64_t part, std::byte* panel, std::size_t r) {
  switch (type) {
    case DataType::q8_0:
      return pack_q8_block(block, panel, r);
    case DataType::q4_1:
      return pack_q4_block(block + 4, load16(block), load16(block + 2), panel, r);
    case DataType::q4_0: {
      const std::uint16_t d = load16(block);
      return pack_q4_block(block + 2, d, float_to_half(-8.0F * half_to_float(d)), panel, r);
    }
    case DataType::q4_k: {
      const Q4Part q4 = q4_k_part(block, static_cast<int>(part));
      return pack_q4_block(q4.nibbles.data(), q4.d, q4.m, panel, r);
    }
    case DataType::q5_0:
      return pack_q8_block(q5_0_as_q8_0(block).data(), panel, r);
    default:
      return pack_as_q8(type, block, part, panel, r);
  }
}

void pack_row(DataType type, std::int64_t cols, const std::byte* row, std::byte* panel, std::size_t r) {
  if (!is_quantised(type)) {
    const std::size_t size = block_bytes(type);
    for (std::size_t c = 0; c < static_cast<std::size_t>(cols); ++c) {
      std::memcpy(panel + (c * 16 + r) * size, row + c * size, size);
    }
    return;
  }
  const std::size_t block = panel_bytes(type, 32);  // of the panel
  const std::int64_t parts = block_elements(type) / 32;
  for (std::int64_t b = 0; b < cols / block_elements(type); ++b, row += block_bytes(type)) {
    for (std::int64_t part = 0; part < parts; ++part, panel += block) pack_part(type, row, part, panel, r);
  }
}

}  // namespace

void pack_panels(DataType file_type, std::int64_t rows, std::int64_t cols, const std::byte* file,
                 std::byte* panels) {
  const std::size_t panel = panel_bytes(packed_type(file_type), cols);
  for (std::int64_t r = 0; r < rows; ++r) {
    std::byte* to = panels + static_cast<std::size_t>(r / kPanelRows) * panel;
    // Zero bytes are weight zero in every type (q8_0: scale 0), so a short panel starts as zeros.
    if (r % kPanelRows == 0 && rows - r < kPanelRows) std::memset(to, 0, panel);
    pack_row(file_type, cols, file + static_cast<std::size_t>(r) * row_bytes(file_type, cols), to,
             static_cast<std::size_t>(r % kPanelRows));
  }
}

void unpack_row(const Matrix& matrix, std::int64_t row, float* out) {
  const std::byte* panel =
      matrix.data + static_cast<std::size_t>(row / kPanelRows) * panel_bytes(matrix.type, matrix.cols);
  const auto r = static_cast<std::size_t>(row % kPanelRows);
  for (std::size_t c = 0; c < static_cast<std::size_t>(matrix.cols); ++c) {
    const std::size_t b = c / 32, k = c % 32;
    switch (matrix.type) {
      case DataType::f32:
        std::memcpy(out + c, panel + (c * 16 + r) * 4, 4);
        break;
      case DataType::f16:
        out[c] = half_to_float(load16(panel + (c * 16 + r) * 2));
        break;
      case DataType::bf16:
        out[c] = bfloat_to_float(load16(panel + (c * 16 + r) * 2));
        break;
      case DataType::q8_0: {
        const std::byte* block = panel + 544 * b;
        const int q = std::to_integer<int>(block[64 * (k / 4) + 4 * r + k % 4]) - 128;
        out[c] = half_to_float(load16(block + 512 + 2 * r)) * static_cast<float>(q);
        break;
      }
      case DataType::q4_1: {
        const std::byte* block = panel + 320 * b;
        const std::byte both = block[64 * (k / 8) + 4 * r + k % 4];
        const int q = std::to_integer<int>(k % 8 < 4 ? both & std::byte{15} : both >> 4);
        out[c] = half_to_float(load16(block + 256 + 2 * r)) * static_cast<float>(q) +
                 half_to_float(load16(block + 288 + 2 * r));
        break;
      }
      default:
        assert(false && "not the type of a panel");
    }
  }
}

}  // namespace helios::gpu
