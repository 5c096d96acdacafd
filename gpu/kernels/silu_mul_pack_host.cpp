#include <cmath>

#include "gpu/kernels/range.hpp"
#include "gpu/kernels/silu_mul_pack.hpp"
#include "gpu/kernels/targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gpu/kernels/silu_mul_pack_host.cpp"
#include <hwy/foreach_target.h>  // includes this file once per target
#include <hwy/highway.h>

#include <hwy/contrib/math/math-inl.h>

#include "gpu/kernels/pack-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace helios::gpu::HWY_NAMESPACE {

void silu_mul_pack(const SiluMulPack& op, std::int64_t chunk, std::int64_t chunks) {
  const DF d;
  constexpr std::int64_t kLanes = hn::MaxLanes(d);
  const VF one = hn::Set(d, 1.0F), limit = hn::Set(d, 88.0F);  // exp(88) is finite
  const auto [begin, end] = chunk_range(op.rows, chunk, chunks);
  const std::int64_t stride = op.stride != 0 ? op.stride : op.cols;
  for (std::int64_t i = begin; i < end; ++i) {
    const float* gate = op.gate + i * stride;
    const float* up = op.up + i * stride;
    float* y = op.out.floats() + i * op.cols;
    std::int64_t c = 0;
    for (; c + kLanes <= op.cols; c += kLanes) {
      const VF g = hn::LoadU(d, gate + c);
      // A NaN survives as the numerator.
      const VF below = hn::Add(one, hn::Exp(d, hn::Min(hn::Neg(g), limit)));
      hn::StoreU(hn::Mul(hn::Div(g, below), hn::LoadU(d, up + c)), d, y + c);
    }
    for (; c < op.cols; ++c) y[c] = gate[c] / (1.0F + std::exp(-gate[c])) * up[c];
    pack_tiles(op.out, i);
  }
}

}  // namespace helios::gpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace helios::gpu {

Kernel<SiluMulPack> silu_mul_pack_kernel(Isa isa) {
  return HELIOS_FOR_ISA(isa, silu_mul_pack);
}

}  // namespace helios::gpu
#endif
