#include <algorithm>
#include <cmath>

#include "gpu/kernels/norm_pack.hpp"
#include "gpu/kernels/range.hpp"
#include "gpu/kernels/targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gpu/kernels/norm_pack_host.cpp"
#include <hwy/foreach_target.h>  // includes this file once per target
#include <hwy/highway.h>

#include "gpu/kernels/pack-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace helios::gpu::HWY_NAMESPACE {

void norm_pack(const NormPack& op, std::int64_t chunk, std::int64_t chunks) {
  const DF d;
  constexpr std::int64_t kLanes = hn::MaxLanes(d);
  const auto [begin, end] = chunk_range(op.rows, chunk, chunks);
  for (std::int64_t i = begin; i < end; ++i) {
    const float* x = op.x + (op.row_index != nullptr ? op.row_index[i] : i) * op.cols;
    float* y = op.out.floats() + i * op.cols;
    if (op.weight == nullptr) {
      std::copy_n(x, op.cols, y);
      pack_tiles(op.out, i);
      continue;
    }
    VF sum0 = hn::Zero(d), sum1 = hn::Zero(d);
    std::int64_t c = 0;
    for (; c + 2 * kLanes <= op.cols; c += 2 * kLanes) {
      const VF a = hn::LoadU(d, x + c), b = hn::LoadU(d, x + c + kLanes);
      sum0 = hn::MulAdd(a, a, sum0);
      sum1 = hn::MulAdd(b, b, sum1);
    }
    float sum = hn::GetLane(hn::SumOfLanes(d, hn::Add(sum0, sum1)));
    for (; c < op.cols; ++c) sum += x[c] * x[c];
    const float scale = 1.0F / std::sqrt(sum / static_cast<float>(op.cols) + op.epsilon);
    const VF scales = hn::Set(d, scale);
    for (c = 0; c + kLanes <= op.cols; c += kLanes) {
      hn::StoreU(hn::Mul(hn::Mul(hn::LoadU(d, x + c), scales), hn::LoadU(d, op.weight + c)), d, y + c);
    }
    for (; c < op.cols; ++c) y[c] = x[c] * scale * op.weight[c];
    pack_tiles(op.out, i);
  }
}

}  // namespace helios::gpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace helios::gpu {

Kernel<NormPack> norm_pack_kernel(Isa isa) {
  return HELIOS_FOR_ISA(isa, norm_pack);
}

}  // namespace helios::gpu
#endif
