#include "gpu/kernels/add_rows.hpp"

#include "gpu/kernels/range.hpp"

namespace helios::gpu {

void add_rows_reference(const AddRows& op, std::int64_t chunk, std::int64_t chunks) {
  const auto [begin, end] = chunk_range(op.rows, chunk, chunks);
  for (std::int64_t i = begin; i < end; ++i) {
    float* x = op.x + i * op.cols;
    for (std::int64_t c = 0; c < op.cols; ++c) {
      if (op.y != nullptr) x[c] += op.y[i * op.cols + c];
      if (op.bias != nullptr) x[c] += op.bias[c];
    }
  }
}

}  // namespace helios::gpu
