#pragma once
#include <cstdint>

#include "gpu/kernels/head.hpp"

namespace helios::gpu {

/// One row's choice of the next token. Order: repetition penalty, temperature, top_k, top_p, min_p.
struct SampleParams {
  float temperature = 0.0F;  // 0: greedy, the penalised argmax
  std::int32_t top_k = 0;    // 0: all
  float top_p = 1.0F;
  float min_p = 0.0F;               // relative to the largest probability
  float repetition_penalty = 1.0F;  // > 1 lowers logits of tokens in history (CTRL, arXiv:1909.05858)
  std::uint64_t seed = 0;
  std::uint64_t counter = 0;  // of the token within its request: (seed, counter) fixes the random number
  const std::int32_t* history = nullptr;
  std::int32_t history_length = 0;
  std::int32_t n_logprobs = 0;  // 0..kMaxLogprobs alternatives
};

struct SampleOut {
  static constexpr std::int32_t kMaxLogprobs = 20;
  std::int32_t token = 0;  // -1 when the row has a NaN
  float logprob = 0.0F;    // of token under the raw logits at temperature 1
  std::int32_t top_count = 0;
  std::int32_t top_ids[kMaxLogprobs] = {};  // by falling logit, then rising id
  float top_logprobs[kMaxLogprobs] = {};
};

/// params, stats, out [rows]; logits [rows, vocab] stay as they are. A row's choice depends on nothing but
/// its own logits and params. Randomness: Philox4x32-10 (Salmon et al., SC 2011) of (seed, counter).
struct Sample {
  const float* logits = nullptr;
  std::int64_t rows = 0, vocab = 0;
  const SampleParams* params = nullptr;
  const HeadStats* stats = nullptr;
  SampleOut* out = nullptr;
};

void sample_reference(const Sample& op, std::int64_t chunk, std::int64_t chunks);

/// The random number in [0, 1) of (seed, counter): 24 bits.
float philox_uniform(std::uint64_t seed, std::uint64_t counter) noexcept;

}  // namespace helios::gpu
