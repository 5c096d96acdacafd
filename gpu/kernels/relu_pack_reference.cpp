#include <vector>

#include "gpu/kernels/norm_pack.hpp"
#include "gpu/kernels/range.hpp"
#include "gpu/kernels/relu_pack.hpp"

namespace helios::gpu {

void relu_pack_reference(const ReluPack& op, std::int64_t chunk, std::int64_t chunks) {
  const auto [begin, end] = chunk_range(op.rows, chunk, chunks);
  std::vector<float> y(static_cast<std::size_t>(op.cols));
  for (std::int64_t i = begin; i < end; ++i) {
    for (std::int64_t c = 0; c < op.cols; ++c) {
      const float x = op.x[i * op.cols + c] + (op.bias != nullptr ? op.bias[c] : 0.0F);
      y[static_cast<std::size_t>(c)] = x < 0.0F ? 0.0F : x;
    }
    pack_row_reference(y.data(), op.out, i);
  }
}

}  // namespace helios::gpu
