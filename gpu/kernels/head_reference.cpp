#include <cmath>

#include "gpu/kernels/head.hpp"
#include "gpu/kernels/range.hpp"

namespace helios::gpu {

void head_stats_reference(const Head& op, std::int64_t chunk, std::int64_t chunks) {
  const auto [begin, end] = chunk_range(op.rows, chunk, chunks);
  for (std::int64_t i = begin; i < end; ++i) {
    const float* x = op.logits + i * op.w.rows;
    HeadStats stats{.argmax = 0, .max = x[0], .logsumexp = 0.0F, .nan = std::isnan(x[0])};
    for (std::int64_t v = 1; v < op.w.rows; ++v) {
      stats.nan = stats.nan || std::isnan(x[v]);
      if (x[v] > stats.max) {
        stats.max = x[v];
        stats.argmax = static_cast<std::int32_t>(v);
      }
    }
    double sum = 0.0;
    for (std::int64_t v = 0; v < op.w.rows; ++v) sum += std::exp(double{x[v]} - double{stats.max});
    stats.logsumexp = static_cast<float>(double{stats.max} + std::log(sum));
    // An infinite logit has no softmax either: inf - inf.
    stats.nan = stats.nan || std::isnan(stats.logsumexp) || std::isinf(stats.max);
    op.stats[i] = stats;
  }
}

}  // namespace helios::gpu
