#include <algorithm>
#include <cmath>
#include <limits>

#include "gpu/kernels/attention.hpp"
#include "gpu/kernels/kv_access.hpp"
#include "gpu/kernels/range.hpp"
#include "gpu/kernels/targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gpu/kernels/attention_host.cpp"
#include <hwy/foreach_target.h>  // includes this file once per target
#include <hwy/highway.h>

#include <hwy/contrib/math/math-inl.h>

#include "gpu/kernels/simd-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace helios::gpu::HWY_NAMESPACE {

template <DataType kType>
HWY_INLINE VF load_cached(const std::byte* at, std::int64_t index) {
  if constexpr (kType == DataType::f32) return hn::LoadU(DF(), reinterpret_cast<const float*>(at) + index);
  return load_half(reinterpret_cast<const std::uint16_t*>(at) + index);
}

template <DataType kType>
HWY_INLINE float dot(const float* q, const std::byte* k, std::int32_t dim) {
  const DF d;
  constexpr std::int32_t kLanes = hn::MaxLanes(d);
  VF sum0 = hn::Zero(d), sum1 = hn::Zero(d);
  std::int32_t c = 0;
  for (; c + 2 * kLanes <= dim; c += 2 * kLanes) {
    sum0 = hn::MulAdd(hn::LoadU(d, q + c), load_cached<kType>(k, c), sum0);
    sum1 = hn::MulAdd(hn::LoadU(d, q + c + kLanes), load_cached<kType>(k, c + kLanes), sum1);
  }
  float sum = hn::GetLane(hn::SumOfLanes(d, hn::Add(sum0, sum1)));
  for (; c < dim; ++c) sum += q[c] * load_element(kType, k, c);
  return sum;
}

/// out[c] = out[c] * rescale + sum over positions of weights[p] * values[p][c], for kCount vectors from
/// column c.
template <DataType kType, int kCount>
HWY_INLINE void add_values(const std::byte* const* values, const float* weights, std::int32_t count,
                           float rescale, std::int32_t c, float* out) {
  const DF d;
  constexpr std::int32_t kLanes = hn::MaxLanes(d);
  VF sums[kCount];
  for (int s = 0; s < kCount; ++s) sums[s] = hn::Mul(hn::LoadU(d, out + c + s * kLanes), hn::Set(d, rescale));
  for (std::int32_t p = 0; p < count; ++p) {
    const VF w = hn::Set(d, weights[p]);
    for (int s = 0; s < kCount; ++s)
      sums[s] = hn::MulAdd(w, load_cached<kType>(values[p], c + s * kLanes), sums[s]);
  }
  for (int s = 0; s < kCount; ++s) hn::StoreU(sums[s], d, out + c + s * kLanes);
}

template <DataType kType>
HWY_INLINE void attend(const Attention& op, std::int64_t row, std::int32_t head) {
  const DF d;
  constexpr std::int32_t kLanes = hn::MaxLanes(d), kSplit = Attention::kSplit;
  const std::int32_t dim = op.kv.head_dim, kv_head = head / (op.heads / op.kv.kv_heads);
  const RowMeta meta = op.meta[row];
  const float* q = op.q + row * op.q_stride + head * dim;
  float* out = op.out + row * op.out_stride + head * dim;
  std::fill_n(out, dim, 0.0F);
  float top = -std::numeric_limits<float>::infinity(), total = 0.0F;
  HWY_ALIGN float weights[kSplit];
  const std::byte* keys[kSplit];
  for (std::int32_t first = 0; first <= meta.position; first += kSplit) {
    const std::int32_t count = std::min(kSplit, meta.position + 1 - first);
    float split_top = top, marker = 0.0F;
    for (std::int32_t p = 0; p < count; ++p) {
      keys[p] = key_at(op.kv, meta.table, first + p, kv_head);
      weights[p] = dot<kType>(q, keys[p], dim) * op.scale;
      split_top = std::max(split_top, weights[p]);
      marker += weights[p] - weights[p];  // NaN when a score is not finite: the vector exp would lose it
    }
    std::fill(weights + count, weights + kSplit, -std::numeric_limits<float>::infinity());
    const float rescale = std::exp(top - split_top);  // 0 at first: exp(-inf)
    top = split_top;
    VF sums = hn::Zero(d);
    for (std::int32_t p = 0; p < kSplit; p += kLanes) {
      const VF w = hn::Exp(d, hn::Sub(hn::Load(d, weights + p), hn::Set(d, top)));
      hn::Store(w, d, weights + p);
      sums = hn::Add(sums, w);
    }
    total = total * rescale + hn::GetLane(hn::SumOfLanes(d, sums)) + marker;
    for (std::int32_t p = 0; p < count; ++p) keys[p] += value_offset(op.kv);
    std::int32_t c = 0;
    for (; c + 4 * kLanes <= dim; c += 4 * kLanes)
      add_values<kType, 4>(keys, weights, count, rescale, c, out);
    for (; c + kLanes <= dim; c += kLanes) add_values<kType, 1>(keys, weights, count, rescale, c, out);
    for (; c < dim; ++c) {
      out[c] *= rescale;
      for (std::int32_t p = 0; p < count; ++p) out[c] += weights[p] * load_element(kType, keys[p], c);
    }
  }
  const float inverse = 1.0F / total;
  for (std::int32_t c = 0; c < dim; ++c) out[c] *= inverse;
}

void attention(const Attention& op, std::int64_t chunk, std::int64_t chunks) {
  const auto [begin, end] = chunk_range(op.rows * op.heads, chunk, chunks);
  for (std::int64_t item = begin; item < end; ++item) {
    const auto head = static_cast<std::int32_t>(item % op.heads);
    if (op.kv.type == DataType::f16) {
      attend<DataType::f16>(op, item / op.heads, head);
    } else {
      attend<DataType::f32>(op, item / op.heads, head);
    }
  }
}

}  // namespace helios::gpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace helios::gpu {

Kernel<Attention> attention_kernel(Isa isa) {
  return HELIOS_FOR_ISA(isa, attention);
}

}  // namespace helios::gpu
#endif
