#include "gpu/matrix.hpp"

#include <cstring>

#include "gpu/file_blocks.hpp"
#include "gpu/half.hpp"

namespace helios::gpu {

namespace {

constexpr std::size_t kHigh = 256;  // where the vectors of high bits begin in a block of q5_1 and q6_k

std::uint16_t load16(const std::byte* at) {
  std::uint16_t value;
  std::memcpy(&value, at, 2);
  return value;
}
void store_half(std::byte* at, float value) {
  const std::uint16_t half = float_to_half(value);
  std::memcpy(at, &half, 2);
}

/// Where the scales of a block begin: 16 fp16, and 16 more but in q8_0.
constexpr std::size_t scales_offset(DataType packed) {
  return panel_bytes(packed, 32) - (packed == DataType::q8_0 ? 32 : 64);
}

/// 32 columns of row r of a panel.
void pack_block(DataType packed, const FileBlock& in, std::byte* out, std::size_t r) {
  std::byte* scales = out + scales_offset(packed) + 2 * r;
  store_half(scales, in.scale[0]);
  if (packed == DataType::q8_0) {
    for (std::size_t g = 0; g < 8; ++g) std::memcpy(out + 64 * g + 4 * r, in.q + 4 * g, 4);
    return;
  }
  store_half(scales + 32, packed == DataType::q6_k ? in.scale[1] : in.minimum);
  out += 4 * r;
  for (std::size_t j = 0; j < 4; ++j) {
    for (std::size_t i = 0; i < 4; ++i) {
      out[64 * j + i] = static_cast<std::byte>((in.q[8 * j + i] & 15) | (in.q[8 * j + 4 + i] & 15) << 4);
    }
  }
  if (packed == DataType::q5_1) {
    for (std::size_t i = 0; i < 4; ++i) {
      int bits = 0;
      for (std::size_t g = 0; g < 8; ++g) bits |= in.q[4 * g + i] >> 4 << g;
      out[kHigh + i] = static_cast<std::byte>(bits);
    }
  } else if (packed == DataType::q6_k) {
    for (std::size_t i = 0; i < 8; ++i) {
      int bits = 0;
      for (std::size_t t = 0; t < 4; ++t) bits |= in.q[16 * (i / 4) + 4 * t + i % 4] >> 4 << (2 * t);
      out[kHigh + 64 * (i / 4) + i % 4] = static_cast<std::byte>(bits);
    }
  }
}

/// The inverse, as floats.
void unpack_block(DataType packed, const std::byte* block, std::size_t r, float* out) {
  const std::byte* scales = block + scales_offset(packed) + 2 * r;
  const float d = half_to_float(load16(scales));
  const float second = packed == DataType::q8_0 ? 0.0F : half_to_float(load16(scales + 32));
  block += 4 * r;
  const auto byte = [block](std::size_t at) { return std::to_integer<int>(block[at]); };
  for (std::size_t k = 0; k < 32; ++k) {
    const std::size_t g = k / 4, i = k % 4;
    if (packed == DataType::q8_0) {
      out[k] = d * static_cast<float>(byte(64 * g + i) - 128);
      continue;
    }
    int q = byte(64 * (g / 2) + i) >> (g % 2 == 0 ? 0 : 4) & 15;
    if (packed == DataType::q6_k) {
      q |= (byte(kHigh + 64 * (g / 4) + i) >> (2 * (g % 4)) & 3) << 4;
      out[k] = (k < 16 ? d : second) * static_cast<float>(q - 32);
      continue;
    }
    if (packed == DataType::q5_1) q |= (byte(kHigh + i) >> g & 1) << 4;
    out[k] = d * static_cast<float>(q) + second;
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
  const std::size_t packed_block = panel_bytes(type, 32);
  for (std::int64_t b = 0; b < cols / 32; ++b, panel += packed_block) {
    pack_block(packed_type(type), read_block(type, row, b), panel, r);
  }
}

}  // namespace

void pack_panels(DataType file_type, std::int64_t rows, std::int64_t cols, const std::byte* file,
                 std::byte* panels) {
  const std::size_t panel = panel_bytes(file_type, cols);
  for (std::int64_t r = 0; r < rows; ++r) {
    std::byte* to = panels + static_cast<std::size_t>(r / kPanelRows) * panel;
    // Zero bytes are weight zero in every type (scale 0, minimum 0), so a short panel starts as zeros.
    if (r % kPanelRows == 0 && rows - r < kPanelRows) std::memset(to, 0, panel);
    pack_row(file_type, cols, file + static_cast<std::size_t>(r) * row_bytes(file_type, cols), to,
             static_cast<std::size_t>(r % kPanelRows));
  }
}

void unpack_row(const Matrix& matrix, std::int64_t row, float* out) {
  const std::byte* panel =
      matrix.data + static_cast<std::size_t>(row / kPanelRows) * panel_bytes(matrix.type, matrix.cols);
  const auto r = static_cast<std::size_t>(row % kPanelRows);
  if (is_quantised(matrix.type)) {
    const std::size_t block = panel_bytes(matrix.type, 32);
    for (std::int64_t b = 0; b < matrix.cols / 32; ++b, panel += block, out += 32)
      unpack_block(matrix.type, panel, r, out);
    return;
  }
  const std::size_t size = block_bytes(matrix.type);
  for (std::size_t c = 0; c < static_cast<std::size_t>(matrix.cols); ++c)
    dequantise_row(matrix.type, panel + (c * 16 + r) * size, 1, out + c);
}

}  // namespace helios::gpu
