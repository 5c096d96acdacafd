#pragma once
// One step of a model as plain values: which rows run through which layers, and which of them yield tokens.

#include <cstdint>
#include <span>
#include <vector>

#include "model/kv_cache.hpp"
#include "model/sampling.hpp"

namespace helios::model {

/// One position of one sequence through layers [first_layer, last_layer), 0-based. first_layer 0: from the
/// token's embedding. first_layer > 0: a catch-up row, from the stored residual of that depth.
/// Rows of a sequence come in the order of their positions.
struct StepRow {
  KvCache::Sequence* sequence = nullptr;
  std::int32_t position = 0;
  std::int32_t token = 0;
  std::int16_t first_layer = 0;
  std::int16_t last_layer = 0;
  std::int16_t output = -1;  // index into StepPlan::outputs, or -1
};

struct StepOutput {
  int depth = 0;                       // = last_layer of its row
  const Sampling* sampling = nullptr;  // null: greedy; borrowed until the step ends
  std::uint64_t counter = 0;           // of the token within its answer
  bool want_logits = false;
};

/// Fastest when rows are ordered so that every layer's active rows are one run: catch-up rows, then the
/// deepest rows, then shallower ones. Any order gives the same results.
struct StepPlan {
  std::vector<StepRow> rows;
  std::vector<StepOutput> outputs;
};

struct TokenLogprob {
  std::int32_t token = 0;
  float logprob = 0.0F;
};

struct StepResult {
  std::int32_t token = 0;                  // -1 when nan
  float confidence = 0.0F;                 // top-1 probability of the raw logits at temperature 1
  float logprob = 0.0F;                    // of token, raw logits at temperature 1
  std::vector<TokenLogprob> top_logprobs;  // Sampling::logprobs of them
  bool nan = false;                        // the row has no answer; its neighbours do
  std::span<const float> logits;           // [vocab] when wanted; valid until the next start()
};

}  // namespace helios::model
