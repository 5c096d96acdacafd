// Small things that all fast bodies share; per-target include guard as Highway wants it.
#if defined(HELIOS_GPU_SIMD_INL_HPP_) == defined(HWY_TARGET_TOGGLE)
#ifdef HELIOS_GPU_SIMD_INL_HPP_
#undef HELIOS_GPU_SIMD_INL_HPP_
#else
#define HELIOS_GPU_SIMD_INL_HPP_
#endif

#include <hwy/highway.h>

#include <cstdint>

#include "gpu/half.hpp"

HWY_BEFORE_NAMESPACE();
namespace helios::gpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using DF = hn::ScalableTag<float>;
using VF = hn::Vec<DF>;

HWY_INLINE VF load_half(const std::uint16_t* at) {
  const hn::Rebind<hwy::float16_t, DF> dh;
  return hn::PromoteTo(DF(), hn::LoadU(dh, reinterpret_cast<const hwy::float16_t*>(at)));
}
HWY_INLINE void store_half(VF value, std::uint16_t* at) {
  const hn::Rebind<hwy::float16_t, DF> dh;
  hn::StoreU(hn::DemoteTo(dh, value), dh, reinterpret_cast<hwy::float16_t*>(at));
}

/// from [count] floats -> halves, and back.
HWY_INLINE void store_halves(const float* from, std::int64_t count, std::uint16_t* to) {
  const DF d;
  const auto n = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  // Without F16C Highway's conversion does not round to nearest even: the plain one does.
  for (; HWY_TARGET != HWY_SSE4 && i + n <= count; i += n) store_half(hn::LoadU(d, from + i), to + i);
  for (; i < count; ++i) to[i] = float_to_half(from[i]);
}
HWY_INLINE void load_halves_to(const std::uint16_t* from, std::int64_t count, float* to) {
  const DF d;
  const auto n = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + n <= count; i += n) hn::StoreU(load_half(from + i), d, to + i);
  for (; i < count; ++i) to[i] = half_to_float(from[i]);
}

}  // namespace helios::gpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
