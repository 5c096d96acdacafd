#include <algorithm>
#include <cmath>
#include <vector>

#include "gpu/kernels/range.hpp"
#include "gpu/kernels/sample_common.hpp"
#include "gpu/kernels/targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gpu/kernels/sample_host.cpp"
#include <hwy/foreach_target.h>  // includes this file once per target
#include <hwy/highway.h>

#include <hwy/contrib/math/math-inl.h>

#include "gpu/kernels/simd-inl.hpp"

#ifndef HELIOS_SAMPLE_ONCE
#define HELIOS_SAMPLE_ONCE
namespace helios::gpu {

/// Candidates whose order is made only as far as it is looked at: a draw ends within the first few.
class SortedPrefix {
 public:
  explicit SortedPrefix(std::vector<Candidate>& all) : all_(all) {}
  const Candidate& operator[](std::size_t index) {
    if (index >= sorted_) extend(index);
    return all_[index];
  }

 private:
  void extend(std::size_t index) {
    const std::size_t want =
        std::min(std::max<std::size_t>(index + 1, sorted_ == 0 ? 64 : 4 * sorted_), all_.size());
    const auto from = all_.begin() + static_cast<std::ptrdiff_t>(sorted_);
    const auto to = all_.begin() + static_cast<std::ptrdiff_t>(want);
    if (to != all_.end()) std::nth_element(from, to, all_.end(), better);
    std::sort(from, to, better);
    sorted_ = want;
  }
  std::vector<Candidate>& all_;
  std::size_t sorted_ = 0;
};

}  // namespace helios::gpu
#endif

HWY_BEFORE_NAMESPACE();
namespace helios::gpu::HWY_NAMESPACE {

/// Sum of exp(x / temperature - top), float within blocks of 1024, double across them.
double mass_of(const float* x, std::int64_t count, float temperature, float top) {
  const DF d;
  constexpr std::int64_t kLanes = hn::MaxLanes(d), kBlock = 1024;
  double sum = 0.0;
  for (std::int64_t block = 0; block < count; block += kBlock) {
    const std::int64_t stop = std::min(block + kBlock, count);
    VF sums = hn::Zero(d);
    std::int64_t v = block;
    for (; v + kLanes <= stop; v += kLanes) {
      const VF scaled = hn::Div(hn::LoadU(d, x + v), hn::Set(d, temperature));
      sums = hn::Add(sums, hn::Exp(d, hn::Sub(scaled, hn::Set(d, top))));
    }
    float rest = hn::GetLane(hn::SumOfLanes(d, sums));
    for (; v < stop; ++v) rest += std::exp(x[v] / temperature - top);
    sum += double{rest};
  }
  return sum;
}

std::int32_t draw(const SampleParams& params, const float* x, std::int64_t vocab) {
  std::vector<Candidate> all(static_cast<std::size_t>(vocab));
  for (std::size_t v = 0; v < all.size(); ++v)
    all[v] = {x[v] / params.temperature, static_cast<std::int32_t>(v)};
  SortedPrefix sorted(all);
  const float top = sorted[0].logit;
  const auto weight = [&](std::size_t i) { return std::exp(double{sorted[i].logit} - double{top}); };
  std::size_t limit = all.size();
  double total = 0.0;
  if (params.top_k > 0 && static_cast<std::size_t>(params.top_k) < limit) {
    limit = static_cast<std::size_t>(params.top_k);
    for (std::size_t i = 0; i < limit; ++i) total += weight(i);
  } else {
    total = mass_of(x, vocab, params.temperature, top);
  }
  std::size_t kept = limit;
  double mass = total;
  if (params.top_p < 1.0F || params.min_p > 0.0F) {
    kept = 0;
    mass = 0.0;
    while (kept < limit &&
           (kept == 0 || (mass < double{params.top_p} * total && weight(kept) >= double{params.min_p}))) {
      mass += weight(kept++);
    }
  }
  double left = double{philox_uniform(params.seed, params.counter)} * mass;
  for (std::size_t i = 0; i + 1 < kept; ++i) {
    left -= weight(i);
    if (left < 0.0) return sorted[i].id;
  }
  return sorted[kept - 1].id;
}

void sample(const Sample& op, std::int64_t chunk, std::int64_t chunks) {
  const auto [begin, end] = chunk_range(op.rows, chunk, chunks);
  std::vector<float> changed;
  for (std::int64_t i = begin; i < end; ++i) {
    const float* raw = op.logits + i * op.vocab;
    const float* x = raw;
    const SampleParams& params = op.params[i];
    SampleOut out;
    if (op.stats[i].nan) {
      out.token = -1;
      out.logprob = op.stats[i].logsumexp;
      op.out[i] = out;
      continue;
    }
    out.token = op.stats[i].argmax;
    if (params.repetition_penalty != 1.0F && params.history_length > 0) {
      changed.assign(raw, raw + op.vocab);
      penalise(params, changed.data(), op.vocab);
      x = changed.data();
      out.token = static_cast<std::int32_t>(std::max_element(x, x + op.vocab) - x);
    }
    if (params.temperature > 0.0F) out.token = draw(params, x, op.vocab);
    out.logprob = raw[out.token] - op.stats[i].logsumexp;
    if (params.n_logprobs > 0) list_top(raw, op.vocab, params.n_logprobs, op.stats[i].logsumexp, out);
    op.out[i] = out;
  }
}

}  // namespace helios::gpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace helios::gpu {

Kernel<Sample> sample_kernel(Isa isa) {
  return HELIOS_FOR_ISA(isa, sample);
}

}  // namespace helios::gpu
#endif
