#pragma once
// How one request's tokens are chosen, and when they end.

#include <cstdint>
#include <string>
#include <vector>

#include "gpu/kernels/sample.hpp"
#include "runtime/result.hpp"

namespace helios::model {

/// Defaults are greedy. The k-th token of a request uses random number (seed, k): neighbours change nothing.
struct Sampling {
  float temperature = 0.0F;         // 0: the likeliest token; at most 100
  int top_k = 0;                    // 0: all
  float top_p = 1.0F;               // (0, 1]
  float min_p = 0.0F;               // [0, 1), relative to the likeliest token
  float repetition_penalty = 1.0F;  // (0, 10]; 1: none
  std::uint64_t seed = 0;
  int logprobs = 0;                    // alternatives reported with each token, 0..20
  std::vector<std::string> stop;       // texts that end the answer and are not shown
  std::vector<std::int32_t> stop_ids;  // tokens that end the answer, beside the model's own
  bool ignore_eos = false;             // the model's end tokens do not end the answer
  int max_tokens = 256;                // >= 1

  /// Errors: bad_request, naming the field, its value and what is allowed.
  Result<void> validate() const;
};

/// What the device needs to choose token `counter`; `history` is borrowed until the step ends.
gpu::SampleParams to_params(const Sampling& sampling, std::uint64_t counter, const std::int32_t* history,
                            std::int32_t history_length);

}  // namespace helios::model
