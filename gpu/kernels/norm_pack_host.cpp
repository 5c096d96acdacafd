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

/// Two passes over a row in cache: its mean, then its variance about the mean (a difference of large sums of
/// squares would lose a row whose mean is far from 0).
HWY_INLINE void layer_norm(const NormPack& op, const float* x, float* y) {
  const DF d;
  constexpr std::int64_t kLanes = hn::MaxLanes(d);
  const auto cols = static_cast<float>(op.cols);
  VF sums = hn::Zero(d);
  std::int64_t c = 0;
  for (; c + kLanes <= op.cols; c += kLanes) sums = hn::Add(sums, hn::LoadU(d, x + c));
  float sum = hn::GetLane(hn::SumOfLanes(d, sums));
  for (; c < op.cols; ++c) sum += x[c];
  const float mean = sum / cols;
  const VF means = hn::Set(d, mean);
  VF squares = hn::Zero(d);
  for (c = 0; c + kLanes <= op.cols; c += kLanes) {
    const VF off = hn::Sub(hn::LoadU(d, x + c), means);
    squares = hn::MulAdd(off, off, squares);
  }
  float square = hn::GetLane(hn::SumOfLanes(d, squares));
  for (; c < op.cols; ++c) square += (x[c] - mean) * (x[c] - mean);
  const float scale = 1.0F / std::sqrt(square / cols + op.epsilon);
  const VF scales = hn::Set(d, scale);
  for (c = 0; c + kLanes <= op.cols; c += kLanes) {
    const VF normed = hn::Mul(hn::Sub(hn::LoadU(d, x + c), means), scales);
    const VF bias = op.bias != nullptr ? hn::LoadU(d, op.bias + c) : hn::Zero(d);
    hn::StoreU(hn::MulAdd(normed, hn::LoadU(d, op.weight + c), bias), d, y + c);
  }
  for (; c < op.cols; ++c)
    y[c] = (x[c] - mean) * scale * op.weight[c] + (op.bias != nullptr ? op.bias[c] : 0.0F);
}

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
    if (op.kind == NormPack::Kind::layer) {
      layer_norm(op, x, y);
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
