#pragma once
#include <cstddef>
#include <cstdint>

namespace helios::gpu {

/// Input of matrix products: written by NormPack and SiluMulPack, read by MatMul and Head. 64-byte aligned.
///
/// First floats [capacity, cols]. When cols is a multiple of 32, then int8 tiles for quantised weights: rows
/// in tiles of 4; per tile and block of 32 columns 176 bytes:
///   int32 q[8][4]   entry [j][i]: columns 4j .. 4j+3 of row i as int8
///   float d[4]      scale of the block (amax / 127; NaN when the block has a NaN or an infinity)
///   float s[4]      d * sum(q)
///   int32 z[4]      -128 * sum(q)
struct Activation {
  std::byte* data = nullptr;
  std::int64_t capacity = 0;  // rows
  std::int64_t cols = 0;

  float* floats() const noexcept { return reinterpret_cast<float*>(data); }
  std::byte* tiles() const noexcept {
    return data + ((static_cast<std::size_t>(capacity * cols) * sizeof(float) + 63) & ~std::size_t{63});
  }
};

inline constexpr std::int64_t kTileRows = 4;
inline constexpr float kTinyBlock = 0x1p-100F;  // blocks below it are all zero: 127 / amax would overflow
inline constexpr std::size_t kTileBlockBytes = 176;

constexpr std::size_t tile_bytes(std::int64_t cols) noexcept {
  return static_cast<std::size_t>(cols / 32) * kTileBlockBytes;
}

constexpr std::size_t activation_bytes(std::int64_t rows, std::int64_t cols) noexcept {
  const std::size_t floats = (static_cast<std::size_t>(rows * cols) * sizeof(float) + 63) & ~std::size_t{63};
  if (cols % 32 != 0) return floats;
  return floats + ((static_cast<std::size_t>((rows + kTileRows - 1) / kTileRows) * tile_bytes(cols) + 63) &
                   ~std::size_t{63});
}

}  // namespace helios::gpu
