// int8 tiles of activations; per-target include guard as Highway wants it.
#if defined(HELIOS_GPU_PACK_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef HELIOS_GPU_PACK_INL_HPP_
#undef HELIOS_GPU_PACK_INL_HPP_
#else
#define HELIOS_GPU_PACK_INL_HPP_
#endif

#include <cmath>
#include <cstring>
#include <limits>

#include "gpu/activation.hpp"
#include "gpu/kernels/simd-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace helios::gpu::HWY_NAMESPACE {

/// Rounds 32 floats times `scale` to int8 columns of one row of a tile, with the offsets' sums (z, z_first);
/// gives the sum.
template <class Block>
HWY_INLINE std::int32_t round_block(const float* x, VF scale, Block& block, std::size_t lane) {
  const DF d;
  const hn::RebindToSigned<DF> di;
  const hn::Rebind<std::int8_t, DF> d8;
  constexpr std::size_t kLanes = hn::MaxLanes(d);
  HWY_ALIGN std::int8_t q[32];
  auto first = hn::Zero(di), second = hn::Zero(di);
  for (std::size_t k = 0; k < 32; k += kLanes) {
    const auto rounded = hn::NearestInt(hn::Mul(hn::LoadU(d, x + k), scale));
    auto& sums = k < 16 ? first : second;
    sums = hn::Add(sums, rounded);
    hn::StoreU(hn::DemoteTo(d8, rounded), d8, q + k);
  }
  const std::int32_t first_sum = hn::GetLane(hn::SumOfLanes(di, first));
  const std::int32_t sum = first_sum + hn::GetLane(hn::SumOfLanes(di, second));
  block.z[lane] = -128 * sum;
  block.z_first[lane] = -32 * first_sum;
  for (std::size_t j = 0; j < 8; ++j) std::memcpy(block.q[j][lane], q + 4 * j, 4);
  return sum;
}

template <class Block>
HWY_INLINE void clear_row(Block& block, std::size_t lane) {
  for (auto& columns : block.q) std::memset(columns[lane], 0, 4);
  block.z[lane] = block.z_first[lane] = 0;
}

/// Row `row`, whose floats are in place already: its tiles, when the shape has them.
HWY_INLINE void pack_tiles(const Activation& out, std::int64_t row) {
  if (out.cols % 32 != 0) return;
  const DF d;
  constexpr std::size_t kLanes = hn::MaxLanes(d);
  const float* y = out.floats() + row * out.cols;
  VF squares = hn::Zero(d);
  for (std::int64_t c = 0; c < out.cols; c += kLanes) {
    const VF x = hn::LoadU(d, y + c);
    squares = hn::MulAdd(x, x, squares);
  }
  const float fine_above =
      kFineRatio * std::sqrt(hn::GetLane(hn::SumOfLanes(d, squares)) / static_cast<float>(out.cols));
  TileBlock* block = tile_blocks(out, row);
  TileResidue* residue = tile_residues(out, row);
  const auto lane = static_cast<std::size_t>(row % kTileRows);
  for (std::int64_t b = 0; b < out.cols / 32; ++b, ++block, ++residue, y += 32) {
    VF top = hn::Zero(d), marker = hn::Zero(d);  // marker: 0, or NaN when an element is not finite
    for (std::size_t k = 0; k < 32; k += kLanes) {
      const VF x = hn::LoadU(d, y + k);
      top = hn::Max(top, hn::Abs(x));
      marker = hn::Add(marker, hn::Sub(x, x));
    }
    const float amax = hn::GetLane(hn::MaxOfLanes(d, top));
    const bool finite = hn::GetLane(hn::SumOfLanes(d, marker)) == 0.0F;
    const bool fine = finite && amax > fine_above;
    const VF inverse = hn::Set(d, finite && amax > kTinyBlock ? 127.0F / amax : 0.0F);
    const std::int32_t sum = finite ? round_block(y, inverse, *block, lane) : 0;
    std::int32_t residue_sum = 0;
    if (fine) {
      HWY_ALIGN float rest[32];
      for (std::size_t k = 0; k < 32; k += kLanes) {
        const VF steps = hn::Mul(hn::LoadU(d, y + k), inverse);
        hn::StoreU(hn::Sub(steps, hn::ConvertTo(d, hn::NearestInt(steps))), d, rest + k);
      }
      residue_sum = round_block(rest, hn::Set(d, kResidueSteps), *residue, lane);
    } else {
      clear_row(*residue, lane);
      if (!finite) clear_row(*block, lane);
    }
    const float scale = finite ? amax / 127.0F : std::numeric_limits<float>::quiet_NaN();
    block->d[lane] = scale;
    block->s[lane] = scale * (static_cast<float>(sum) + static_cast<float>(residue_sum) / kResidueSteps);
    block->fine[lane] = fine ? 1 : 0;
  }
}

}  // namespace helios::gpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
