#include <algorithm>

#include "gpu/kernels/copy_rows.hpp"
#include "gpu/kernels/range.hpp"

namespace helios::gpu {

void copy_rows_reference(const CopyRows& op, std::int64_t chunk, std::int64_t chunks) {
  const auto [begin, end] = chunk_range(op.rows, chunk, chunks);
  for (std::int64_t i = begin; i < end; ++i) {
    const std::int64_t from = op.from_index != nullptr ? op.from_index[i] : i;
    const std::int64_t to = op.to_index != nullptr ? op.to_index[i] : i;
    std::copy_n(op.from + from * op.cols, op.cols, op.to + to * op.cols);
  }
}

}  // namespace helios::gpu
