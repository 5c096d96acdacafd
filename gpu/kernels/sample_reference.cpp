#include <algorithm>
#include <cmath>
#include <vector>

#include "gpu/kernels/range.hpp"
#include "gpu/kernels/sample_common.hpp"

namespace helios::gpu {

namespace {

std::int32_t largest(const std::vector<float>& logits) {
  const auto it = std::max_element(logits.begin(), logits.end());  // the first among equals
  return static_cast<std::int32_t>(it - logits.begin());
}

std::int32_t draw(const SampleParams& params, const std::vector<float>& logits) {
  std::vector<Candidate> all(logits.size());
  for (std::size_t v = 0; v < logits.size(); ++v)
    all[v] = {logits[v] / params.temperature, static_cast<std::int32_t>(v)};
  std::sort(all.begin(), all.end(), better);
  if (params.top_k > 0 && static_cast<std::size_t>(params.top_k) < all.size()) {
    all.resize(static_cast<std::size_t>(params.top_k));
  }
  std::vector<double> weights;
  double total = 0.0;
  for (const Candidate& c : all) {
    weights.push_back(std::exp(double{c.logit} - double{all[0].logit}));
    total += weights.back();
  }
  // top_p keeps the smallest head of the list whose mass reaches it, min_p what is within it of the best.
  std::size_t kept = 0;
  double mass = 0.0;
  while (kept < all.size() &&
         (kept == 0 || (mass < double{params.top_p} * total && weights[kept] >= double{params.min_p}))) {
    mass += weights[kept++];
  }
  double left = double{philox_uniform(params.seed, params.counter)} * mass;
  for (std::size_t i = 0; i + 1 < kept; ++i) {
    left -= weights[i];
    if (left < 0.0) return all[i].id;
  }
  return all[kept - 1].id;
}

}  // namespace

void sample_reference(const Sample& op, std::int64_t chunk, std::int64_t chunks) {
  const auto [begin, end] = chunk_range(op.rows, chunk, chunks);
  for (std::int64_t i = begin; i < end; ++i) {
    const float* x = op.logits + i * op.vocab;
    const SampleParams& params = op.params[i];
    SampleOut out;
    if (op.stats[i].nan) {
      out.token = -1;
      out.logprob = op.stats[i].logsumexp;
    } else {
      std::vector<float> logits(x, x + op.vocab);
      if (params.repetition_penalty != 1.0F) penalise(params, logits.data(), op.vocab);
      out.token = params.temperature > 0.0F ? draw(params, logits) : largest(logits);
      out.logprob = x[out.token] - op.stats[i].logsumexp;
      if (params.n_logprobs > 0) list_top(x, op.vocab, params.n_logprobs, op.stats[i].logsumexp, out);
    }
    op.out[i] = out;
  }
}

}  // namespace helios::gpu
