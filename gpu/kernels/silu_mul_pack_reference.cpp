#include <cmath>
#include <vector>

#include "gpu/kernels/norm_pack.hpp"
#include "gpu/kernels/range.hpp"
#include "gpu/kernels/silu_mul_pack.hpp"

namespace helios::gpu {

void silu_mul_pack_reference(const SiluMulPack& op, std::int64_t chunk, std::int64_t chunks) {
  const auto [begin, end] = chunk_range(op.rows, chunk, chunks);
  const std::int64_t stride = op.stride != 0 ? op.stride : op.cols;
  std::vector<float> y(static_cast<std::size_t>(op.cols));
  for (std::int64_t i = begin; i < end; ++i) {
    for (std::int64_t c = 0; c < op.cols; ++c) {
      const double gate = op.gate[i * stride + c];
      y[static_cast<std::size_t>(c)] =
          static_cast<float>(gate / (1.0 + std::exp(-gate)) * double{op.up[i * stride + c]});
    }
    pack_row_reference(y.data(), op.out, i);
  }
}

}  // namespace helios::gpu
