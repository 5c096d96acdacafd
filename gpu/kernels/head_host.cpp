#include <cmath>
#include <limits>

#include "gpu/kernels/head.hpp"
#include "gpu/kernels/range.hpp"
#include "gpu/kernels/targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gpu/kernels/head_host.cpp"
#include <hwy/foreach_target.h>  // includes this file once per target
#include <hwy/highway.h>

#include <hwy/contrib/math/math-inl.h>

#include "gpu/kernels/simd-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace helios::gpu::HWY_NAMESPACE {

/// Two passes over logits in L2: the largest with its index, then the sum of exponentials in blocks of 1024
/// (float within a block, double across them: a vocabulary is long).
void head_stats(const Head& op, std::int64_t chunk, std::int64_t chunks) {
  const DF d;
  const hn::RebindToSigned<DF> di;
  constexpr std::int64_t kLanes = hn::MaxLanes(d), kBlock = 1024;
  const auto [begin, end] = chunk_range(op.rows, chunk, chunks);
  const std::int64_t vocab = op.w.rows;
  for (std::int64_t i = begin; i < end; ++i) {
    const float* x = op.logits + i * vocab;
    VF tops = hn::Set(d, -std::numeric_limits<float>::infinity()), marker = hn::Zero(d);
    std::int64_t v = 0;
    for (; v + kLanes <= vocab; v += kLanes) {
      const VF logits = hn::LoadU(d, x + v);
      tops = hn::Max(tops, logits);
      marker = hn::Or(marker, hn::VecFromMask(d, hn::IsNaN(logits)));
    }
    bool nan = !hn::AllFalse(di, hn::Ne(hn::BitCast(di, marker), hn::Zero(di)));
    float top = hn::GetLane(hn::MaxOfLanes(d, tops));
    for (; v < vocab; ++v) {
      nan = nan || std::isnan(x[v]);
      top = x[v] > top ? x[v] : top;
    }
    std::int64_t argmax = 0;
    while (!nan && x[argmax] != top) ++argmax;
    double sum = 0.0;
    const VF minus = hn::Set(d, top);
    for (std::int64_t block = 0; block < vocab; block += kBlock) {
      const std::int64_t stop = block + kBlock < vocab ? block + kBlock : vocab;
      VF sums = hn::Zero(d);
      for (v = block; v + kLanes <= stop; v += kLanes) {
        sums = hn::Add(sums, hn::Exp(d, hn::Sub(hn::LoadU(d, x + v), minus)));
      }
      float rest = hn::GetLane(hn::SumOfLanes(d, sums));
      for (; v < stop; ++v) rest += std::exp(x[v] - top);
      sum += double{rest};
    }
    const auto logsumexp =
        nan ? std::numeric_limits<float>::quiet_NaN() : static_cast<float>(double{top} + std::log(sum));
    op.stats[i] = {.argmax = static_cast<std::int32_t>(argmax),
                   .max = top,
                   .logsumexp = logsumexp,
                   .nan = nan || std::isnan(logsumexp) || std::isinf(top)};
  }
}

}  // namespace helios::gpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace helios::gpu {

Kernel<Head> head_stats_kernel(Isa isa) {
  return HELIOS_FOR_ISA(isa, head_stats);
}

}  // namespace helios::gpu
#endif
