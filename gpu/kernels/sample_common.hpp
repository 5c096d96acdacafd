#pragma once
// What both bodies of Sample share.

#include <algorithm>
#include <vector>

#include "gpu/kernels/sample.hpp"

namespace helios::gpu {

struct Candidate {
  float logit;
  std::int32_t id;
};

/// By falling logit, then rising id.
inline bool better(const Candidate& a, const Candidate& b) {
  return a.logit > b.logit || (a.logit == b.logit && a.id < b.id);
}

/// Lowers the logits of tokens in the history, once a token, however often it occurred.
inline void penalise(const SampleParams& params, float* logits, std::int64_t vocab) {
  std::vector<std::int32_t> ids(params.history, params.history + params.history_length);
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  for (const std::int32_t id : ids) {
    if (id < 0 || id >= vocab) continue;
    logits[id] =
        logits[id] > 0.0F ? logits[id] / params.repetition_penalty : logits[id] * params.repetition_penalty;
  }
}

/// The best `n_logprobs` tokens of the raw logits.
inline void list_top(const float* x, std::int64_t vocab, std::int32_t count, float logsumexp,
                     SampleOut& out) {
  const auto n = static_cast<std::int32_t>(
      std::min<std::int64_t>({std::max(count, 0), vocab, std::int64_t{SampleOut::kMaxLogprobs}}));
  Candidate best[SampleOut::kMaxLogprobs];  // sorted; one pass, since most logits are below its last
  std::int32_t size = 0;
  for (std::int64_t v = 0; n > 0 && v < vocab; ++v) {
    const Candidate c{x[v], static_cast<std::int32_t>(v)};
    if (size == n && !better(c, best[n - 1])) continue;
    std::int32_t at = size < n ? size++ : n - 1;
    for (; at > 0 && better(c, best[at - 1]); --at) best[at] = best[at - 1];
    best[at] = c;
  }
  out.top_count = n;
  for (std::int32_t i = 0; i < n; ++i) {
    out.top_ids[i] = best[i].id;
    out.top_logprobs[i] = best[i].logit - logsumexp;
  }
}

}  // namespace helios::gpu
