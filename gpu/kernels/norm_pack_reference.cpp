#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "gpu/kernels/norm_pack.hpp"
#include "gpu/kernels/range.hpp"

namespace helios::gpu {

void pack_row_reference(const float* y, const Activation& out, std::int64_t row) {
  std::copy_n(y, out.cols, out.floats() + row * out.cols);
  if (out.cols % 32 != 0) return;
  double squares = 0.0;
  for (std::int64_t c = 0; c < out.cols; ++c) squares += double{y[c]} * double{y[c]};
  const double fine_above = kFineRatio * std::sqrt(squares / static_cast<double>(out.cols));
  TileBlock* block = tile_blocks(out, row);
  TileResidue* residue = tile_residues(out, row);
  const auto lane = static_cast<std::size_t>(row % kTileRows);
  for (std::int64_t b = 0; b < out.cols / 32; ++b, ++block, ++residue) {
    const float* x = y + 32 * b;
    float amax = 0.0F;
    bool finite = true;
    for (int k = 0; k < 32; ++k) {
      finite = finite && std::isfinite(x[k]);
      amax = std::max(amax, std::fabs(x[k]));
    }
    const float inverse = finite && amax > kTinyBlock ? 127.0F / amax : 0.0F;
    const bool fine = finite && amax > fine_above;
    std::int32_t sum = 0, residue_sum = 0;
    block->z_first[lane] = residue->z_first[lane] = 0;
    for (std::size_t k = 0; k < 32; ++k) {
      const float steps = finite ? x[k] * inverse : 0.0F;
      const auto q = static_cast<std::int8_t>(std::lrintf(steps));
      const auto rest =
          static_cast<std::int8_t>(fine ? std::lrintf((steps - static_cast<float>(q)) * kResidueSteps) : 0);
      block->q[k / 4][lane][k % 4] = q;
      residue->q[k / 4][lane][k % 4] = rest;
      sum += q;
      residue_sum += rest;
      if (k < 16) {
        block->z_first[lane] -= 32 * q;
        residue->z_first[lane] -= 32 * rest;
      }
    }
    const float d = finite ? amax / 127.0F : std::numeric_limits<float>::quiet_NaN();
    block->d[lane] = d;
    block->s[lane] = d * (static_cast<float>(sum) + static_cast<float>(residue_sum) / kResidueSteps);
    block->z[lane] = -128 * sum;
    block->fine[lane] = fine ? 1 : 0;
    residue->z[lane] = -128 * residue_sum;
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
    const auto cols = static_cast<double>(op.cols);
    double mean = 0.0, sum = 0.0;
    if (op.kind == NormPack::Kind::layer) {
      for (std::int64_t c = 0; c < op.cols; ++c) mean += double{x[c]};
      mean /= cols;
    }
    for (std::int64_t c = 0; c < op.cols; ++c) sum += (double{x[c]} - mean) * (double{x[c]} - mean);
    const double scale = 1.0 / std::sqrt(sum / cols + double{op.epsilon});
    for (std::int64_t c = 0; c < op.cols; ++c) {
      const double bias = op.bias != nullptr ? double{op.bias[c]} : 0.0;
      y[static_cast<std::size_t>(c)] =
          static_cast<float>((double{x[c]} - mean) * scale * double{op.weight[c]} + bias);
    }
    pack_row_reference(y.data(), op.out, i);
  }
}

}  // namespace helios::gpu
