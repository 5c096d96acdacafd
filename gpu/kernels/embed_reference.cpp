#include <algorithm>
#include <limits>

#include "gpu/kernels/embed.hpp"
#include "gpu/kernels/range.hpp"

namespace helios::gpu {

void embed_reference(const Embed& op, std::int64_t chunk, std::int64_t chunks) {
  const auto [begin, end] = chunk_range(op.rows, chunk, chunks);
  for (std::int64_t i = begin; i < end; ++i) {
    float* out = op.out + i * op.table.cols;
    if (op.ids[i] >= 0 && op.ids[i] < op.table.rows) {
      unpack_row(op.table, op.ids[i], out);
    } else {
      std::fill_n(out, op.table.cols, std::numeric_limits<float>::quiet_NaN());
    }
  }
}

}  // namespace helios::gpu
