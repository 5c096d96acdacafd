#include <algorithm>
#include <vector>

#include "gpu/kernels/mat_mul.hpp"
#include "gpu/kernels/range.hpp"

namespace helios::gpu {

namespace {

void project(const MatMul& op, const Projection& p, Range rows, std::vector<float>& weights) {
  const std::int64_t cols = op.in.cols;
  for (std::int64_t r = rows.begin; r < rows.end; ++r) {
    unpack_row(p.w, r, weights.data());
    for (std::int64_t i = 0; i < op.rows; ++i) {
      const float* x = op.in.floats() + i * cols;
      double sum = 0.0;
      for (std::int64_t c = 0; c < cols; ++c)
        sum += double{weights[static_cast<std::size_t>(c)]} * double{x[c]};
      float& out = p.out[i * p.out_stride + r];
      out = p.accumulate ? out + static_cast<float>(sum) : static_cast<float>(sum);
    }
  }
}

}  // namespace

void mat_mul_reference(const MatMul& op, std::int64_t chunk, std::int64_t chunks) {
  std::vector<float> weights(static_cast<std::size_t>(op.in.cols));
  for (std::int32_t k = 0; k < op.count; ++k) {
    const Projection& p = op.projections[static_cast<std::size_t>(k)];
    project(op, p, chunk_range(p.w.rows, chunk, chunks), weights);
  }
}

}  // namespace helios::gpu
