#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "gpu/kernels/norm_pack.hpp"
#include "gpu/kernels/range.hpp"

namespace helios::gpu {

void pack_row_reference(const float* y, const Activation& out, std::int64_t row) {
  std::copy_n(y, out.cols, out.floats() + row * out.cols);
  if (out.cols % 32 != 0) return;
  std::byte* tile = out.tiles() + static_cast<std::size_t>(row / kTileRows) * tile_bytes(out.cols);
  const auto lane = static_cast<std::size_t>(row % kTileRows);
  for (std::int64_t b = 0; b < out.cols / 32; ++b, tile += kTileBlockBytes) {
    const float* x = y + 32 * b;
    float amax = 0.0F;
    bool finite = true;
    for (int k = 0; k < 32; ++k) {
      finite = finite && std::isfinite(x[k]);
      amax = std::max(amax, std::fabs(x[k]));
    }
    const float inverse = finite && amax > kTinyBlock ? 127.0F / amax : 0.0F;
    std::int32_t sum = 0;
    std::int8_t q[32] = {};
    for (int k = 0; k < 32 && finite; ++k) {
      q[k] = static_cast<std::int8_t>(std::lrintf(x[k] * inverse));
      sum += q[k];
    }
    const float d = finite ? amax / 127.0F : std::numeric_limits<float>::quiet_NaN();
    const float s = d * static_cast<float>(sum);
    const std::int32_t z = -128 * sum;
    for (std::size_t j = 0; j < 8; ++j) std::memcpy(tile + (j * 4 + lane) * 4, q + 4 * j, 4);
    std::memcpy(tile + 128 + 4 * lane, &d, 4);
    std::memcpy(tile + 144 + 4 * lane, &s, 4);
    std::memcpy(tile + 160 + 4 * lane, &z, 4);
  }
}

void norm_pack_reference(const NormPack& op, std::int64_t chunk, std::int64_t chunks) {
  const auto [begin, end] = chunk_range(op.rows, chunk, chunks);
  std::vector<float> y(static_cast<std::size_t>(op.cols));
  for (std::int64_t i = begin; i < end; ++i) {
    const float* x = op.x + (op.row_index != nullptr ? op.row_index[i] : i) * op.cols;
    if (op.weight == nullptr) {
      pack_row_reference(x, op.out, i);
      continue;
    }
    double sum = 0.0;
    for (std::int64_t c = 0; c < op.cols; ++c) sum += double{x[c]} * double{x[c]};
    const double scale = 1.0 / std::sqrt(sum / static_cast<double>(op.cols) + double{op.epsilon});
    for (std::int64_t c = 0; c < op.cols; ++c) {
      y[static_cast<std::size_t>(c)] = static_cast<float>(double{x[c]} * scale * double{op.weight[c]});
    }
    pack_row_reference(y.data(), op.out, i);
  }
}

}  // namespace helios::gpu
