#include "gpu/kernels/row_store.hpp"

#include "gpu/kernels/kv_access.hpp"
#include "gpu/kernels/range.hpp"

namespace helios::gpu {

void row_store_reference(const RowStore& op, std::int64_t chunk, std::int64_t chunks) {
  const auto [begin, end] = chunk_range(op.rows, chunk, chunks);
  for (std::int64_t i = begin; i < end; ++i) {
    float* x = op.x + (op.row_index != nullptr ? op.row_index[i] : i) * op.pages.cols;
    std::byte* page = row_at(op.pages, op.meta[i]);
    for (std::int64_t c = 0; c < op.pages.cols; ++c) {
      if (op.direction == RowStore::Direction::save) {
        store_element(op.pages.type, page, c, x[c]);
      } else {
        x[c] = load_element(op.pages.type, page, c);
      }
    }
  }
}

}  // namespace helios::gpu
