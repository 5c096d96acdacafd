// int8 tiles of activations; per-target include guard as Highway wants it.
#if defined(HELIOS_GPU_PACK_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef HELIOS_GPU_PACK_INL_HPP_
#undef HELIOS_GPU_PACK_INL_HPP_
#else
#define HELIOS_GPU_PACK_INL_HPP_
#endif

#include <cstring>
#include <limits>

#include "gpu/activation.hpp"
#include "gpu/kernels/simd-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace helios::gpu::HWY_NAMESPACE {

/// Row `row`, whose floats are in place already: its int8 blocks, when the shape has them.
HWY_INLINE void pack_tiles(const Activation& out, std::int64_t row) {
  if (out.cols % 32 != 0) return;
  const DF d;
  const hn::RebindToSigned<DF> di;
  const hn::Rebind<std::int8_t, DF> d8;
  constexpr std::size_t kLanes = hn::MaxLanes(d);
  const float* y = out.floats() + row * out.cols;
  std::byte* tile = out.tiles() + static_cast<std::size_t>(row / kTileRows) * tile_bytes(out.cols);
  const auto lane = static_cast<std::size_t>(row % kTileRows);
  for (std::int64_t b = 0; b < out.cols / 32; ++b, tile += kTileBlockBytes, y += 32) {
    VF top = hn::Zero(d), marker = hn::Zero(d);  // marker: 0, or NaN when an element is not finite
    for (std::size_t k = 0; k < 32; k += kLanes) {
      const VF x = hn::LoadU(d, y + k);
      top = hn::Max(top, hn::Abs(x));
      marker = hn::Add(marker, hn::Sub(x, x));
    }
    const float amax = hn::GetLane(hn::MaxOfLanes(d, top));
    const bool finite = hn::GetLane(hn::SumOfLanes(d, marker)) == 0.0F;
    const VF inverse = hn::Set(d, finite && amax > kTinyBlock ? 127.0F / amax : 0.0F);
    HWY_ALIGN std::int8_t q[32];
    auto sums = hn::Zero(di);
    for (std::size_t k = 0; k < 32; k += kLanes) {
      const auto rounded = hn::NearestInt(hn::Mul(hn::LoadU(d, y + k), inverse));
      sums = hn::Add(sums, rounded);
      hn::StoreU(hn::DemoteTo(d8, rounded), d8, q + k);
    }
    const std::int32_t sum = finite ? hn::GetLane(hn::SumOfLanes(di, sums)) : 0;
    const float scale = finite ? amax / 127.0F : std::numeric_limits<float>::quiet_NaN();
    const float s = scale * static_cast<float>(sum);
    const std::int32_t z = -128 * sum;
    for (std::size_t j = 0; j < 8; ++j) std::memcpy(tile + (j * 4 + lane) * 4, q + 4 * j, 4);
    std::memcpy(tile + 128 + 4 * lane, &scale, 4);
    std::memcpy(tile + 144 + 4 * lane, &s, 4);
    std::memcpy(tile + 160 + 4 * lane, &z, 4);
  }
}

}  // namespace helios::gpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
