#pragma once
#include <cstddef>
#include <cstdint>

namespace helios::gpu {

/// Input of matrix products: written by NormPack, SiluMulPack and ReluPack, read by MatMul and Head. 64-byte
/// aligned.
///
/// First floats [capacity, cols]. When cols is a multiple of 32, then tiles for quantised weights: rows in
/// tiles of 4, each with its blocks of 32 columns (TileBlock), then as many residues (TileResidue).
///
/// Int8 in blocks of 32 loses most where a few columns stand far above the rest of their row. A block whose
/// largest magnitude is over kFineRatio times the row's root mean square is *fine*: what rounding left is
/// kept as a second int8 plane, and the products add it. On SmolLM2 a tenth of the blocks are fine, and the
/// share of positions whose argmax equals float32's goes from 97.1 % to 98.7 % (test_model_logits).
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

/// 32 columns of the 4 rows of a tile. The value of column c of row i is about d[i] * (q + residue / 254).
struct TileBlock {
  std::int8_t q[8][kTileRows][4];   // [j][i]: columns 4j .. 4j+3 of row i
  float d[kTileRows];               // amax / 127; NaN when the block has a NaN or an infinity
  float s[kTileRows];               // d * (sum(q) + sum(residue) / 254)
  std::int32_t z[kTileRows];        // -128 * sum(q)
  std::int32_t z_first[kTileRows];  // -32 * sum(q) of the first 16 columns
  std::int32_t fine[kTileRows];     // 1: the row's residue counts
};
static_assert(sizeof(TileBlock) == 208);

/// The second plane of a block: zero in rows that are not fine, stale in blocks where no row is.
struct TileResidue {
  std::int8_t q[8][kTileRows][4];
  std::int32_t z[kTileRows], z_first[kTileRows];  // as in TileBlock
};
static_assert(sizeof(TileResidue) == 160);

inline constexpr float kFineRatio = 5.0F;
inline constexpr float kResidueSteps = 254.0F;  // of one step of q: a residue is at most half a step, 127
inline constexpr float kTinyBlock = 0x1p-100F;  // blocks below it are all zero: 127 / amax would overflow

constexpr std::size_t tile_bytes(std::int64_t cols) noexcept {
  return static_cast<std::size_t>(cols / 32) * (sizeof(TileBlock) + sizeof(TileResidue));
}

constexpr std::size_t activation_bytes(std::int64_t rows, std::int64_t cols) noexcept {
  const std::size_t floats = (static_cast<std::size_t>(rows * cols) * sizeof(float) + 63) & ~std::size_t{63};
  if (cols % 32 != 0) return floats;
  return floats + ((static_cast<std::size_t>((rows + kTileRows - 1) / kTileRows) * tile_bytes(cols) + 63) &
                   ~std::size_t{63});
}

/// The blocks of the tile that holds `row`; its residues follow them.
inline TileBlock* tile_blocks(const Activation& a, std::int64_t row) noexcept {
  return reinterpret_cast<TileBlock*>(a.tiles() +
                                      static_cast<std::size_t>(row / kTileRows) * tile_bytes(a.cols));
}
inline TileResidue* tile_residues(const Activation& a, std::int64_t row) noexcept {
  return reinterpret_cast<TileResidue*>(tile_blocks(a, row) + a.cols / 32);
}

}  // namespace helios::gpu
