#include <algorithm>
#include <limits>

#include "gpu/kernels/add_positions.hpp"
#include "gpu/kernels/range.hpp"

namespace helios::gpu {

void add_positions_reference(const AddPositions& op, std::int64_t chunk, std::int64_t chunks) {
  const auto [begin, end] = chunk_range(op.rows, chunk, chunks);
  for (std::int64_t i = begin; i < end; ++i) {
    float* x = op.x + i * op.cols;
    const std::int64_t row = std::int64_t{op.meta[i].position} + op.offset;
    if (row < 0 || row >= op.table_rows) {
      std::fill_n(x, op.cols, std::numeric_limits<float>::quiet_NaN());
      continue;
    }
    for (std::int64_t c = 0; c < op.cols; ++c) x[c] += op.table[row * op.cols + c];
  }
}

}  // namespace helios::gpu
