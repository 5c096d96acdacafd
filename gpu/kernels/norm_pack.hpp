#pragma once
#include <cstdint>

#include "gpu/activation.hpp"

namespace helios::gpu {

/// A norm of rows of x [.., cols], packed as input of products. weight [cols]; null: y = x (pack only).
/// row_index [rows] gathers rows of x; null: row i is row i.
///   rms    y = x / sqrt(mean(x^2) + epsilon) * weight. Zhang and Sennrich 2019, arXiv:1910.07467.
///   layer  y = (x - mean(x)) / sqrt(variance(x) + epsilon) * weight + bias. Ba et al. 2016,
///   arXiv:1607.06450.
struct NormPack {
  enum class Kind : std::uint8_t { rms, layer };

  const float* x = nullptr;
  const float* weight = nullptr;
  float epsilon = 1e-5F;
  std::int64_t rows = 0, cols = 0;
  Activation out;
  const std::int32_t* row_index = nullptr;
  Kind kind = Kind::rms;
  const float* bias = nullptr;  // [cols], of a layer norm; null: none
};

void norm_pack_reference(const NormPack& op, std::int64_t chunk, std::int64_t chunks);

/// Writes row `row` of an activation: floats, and the int8 tile when cols is a multiple of 32.
void pack_row_reference(const float* y, const Activation& out, std::int64_t row);

}  // namespace helios::gpu
