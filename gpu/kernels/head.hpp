#pragma once
#include <cstdint>

#include "gpu/activation.hpp"
#include "gpu/matrix.hpp"

namespace helios::gpu {

/// What a row's logits say. Top-1 probability at temperature 1 = exp(max - logsumexp).
struct HeadStats {
  std::int32_t argmax = 0;  // the lowest index among equals
  float max = 0.0F;
  float logsumexp = 0.0F;
  bool nan = false;  // a logit is NaN: the row has no answer
};

/// logits = w * in, and their statistics. logits [rows, w.rows] f32, stats [rows].
struct Head {
  Activation in;
  std::int64_t rows = 0;
  Matrix w;
  float* logits = nullptr;
  HeadStats* stats = nullptr;
};

/// Statistics of rows [0, rows): the second half of Head.
void head_stats_reference(const Head& op, std::int64_t chunk, std::int64_t chunks);

}  // namespace helios::gpu
