#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "gpu/kernels/attention.hpp"
#include "gpu/kernels/kv_access.hpp"
#include "gpu/kernels/range.hpp"

namespace helios::gpu {

void attention_reference(const Attention& op, std::int64_t chunk, std::int64_t chunks) {
  const auto [begin, end] = chunk_range(op.rows * op.heads, chunk, chunks);
  const std::int32_t dim = op.kv.head_dim, group = op.heads / op.kv.kv_heads;
  std::vector<double> scores, sums(static_cast<std::size_t>(dim));
  for (std::int64_t item = begin; item < end; ++item) {
    const std::int64_t i = item / op.heads;
    const auto h = static_cast<std::int32_t>(item % op.heads);
    const RowMeta meta = op.meta[i];
    const float* q = op.q + i * op.q_stride + h * dim;
    scores.assign(static_cast<std::size_t>(meta.position) + 1, 0.0);
    double top = -std::numeric_limits<double>::infinity();
    for (std::int32_t p = 0; p <= meta.position; ++p) {
      const std::byte* k = key_at(op.kv, meta.table, p, h / group);
      double dot = 0.0;
      for (std::int32_t d = 0; d < dim; ++d) dot += double{q[d]} * double{load_element(op.kv.type, k, d)};
      scores[static_cast<std::size_t>(p)] = dot * double{op.scale};
      top = std::max(top, scores[static_cast<std::size_t>(p)]);
    }
    double total = 0.0;
    std::fill(sums.begin(), sums.end(), 0.0);
    for (std::int32_t p = 0; p <= meta.position; ++p) {
      const std::byte* v = key_at(op.kv, meta.table, p, h / group) + value_offset(op.kv);
      const double weight = std::exp(scores[static_cast<std::size_t>(p)] - top);
      total += weight;
      for (std::int32_t d = 0; d < dim; ++d) {
        sums[static_cast<std::size_t>(d)] += weight * double{load_element(op.kv.type, v, d)};
      }
    }
    float* out = op.out + i * op.out_stride + h * dim;
    for (std::int32_t d = 0; d < dim; ++d)
      out[d] = static_cast<float>(sums[static_cast<std::size_t>(d)] / total);
  }
}

}  // namespace helios::gpu
