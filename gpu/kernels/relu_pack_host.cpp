#include "gpu/kernels/range.hpp"
#include "gpu/kernels/relu_pack.hpp"
#include "gpu/kernels/targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gpu/kernels/relu_pack_host.cpp"
#include <hwy/foreach_target.h>  // includes this file once per target
#include <hwy/highway.h>

#include "gpu/kernels/pack-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace helios::gpu::HWY_NAMESPACE {

void relu_pack(const ReluPack& op, std::int64_t chunk, std::int64_t chunks) {
  const DF d;
  constexpr std::int64_t kLanes = hn::MaxLanes(d);
  const auto [begin, end] = chunk_range(op.rows, chunk, chunks);
  for (std::int64_t i = begin; i < end; ++i) {
    const float* x = op.x + i * op.cols;
    float* y = op.out.floats() + i * op.cols;
    std::int64_t c = 0;
    for (; c + kLanes <= op.cols; c += kLanes) {
      const VF bias = op.bias != nullptr ? hn::LoadU(d, op.bias + c) : hn::Zero(d);
      const VF sum = hn::Add(hn::LoadU(d, x + c), bias);
      hn::StoreU(hn::IfThenZeroElse(hn::Lt(sum, hn::Zero(d)), sum), d, y + c);  // Max would lose a NaN
    }
    for (; c < op.cols; ++c) {
      const float sum = x[c] + (op.bias != nullptr ? op.bias[c] : 0.0F);
      y[c] = sum < 0.0F ? 0.0F : sum;
    }
    pack_tiles(op.out, i);
  }
}

}  // namespace helios::gpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace helios::gpu {

Kernel<ReluPack> relu_pack_kernel(Isa isa) {
  return HELIOS_FOR_ISA(isa, relu_pack);
}

}  // namespace helios::gpu
#endif
