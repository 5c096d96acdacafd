#pragma once
#include <array>
#include <cassert>
#include <cstdint>

#include "gpu/activation.hpp"
#include "gpu/matrix.hpp"

namespace helios::gpu {

struct Projection {
  Matrix w;
  float* out = nullptr;         // [rows, w.rows] with out_stride floats between rows
  std::int64_t out_stride = 0;  // >= w.rows
  bool accumulate = false;      // out += product, else out = product
};

/// Up to three products of one input: fused QKV, gate and up. out[i, r] (+)= sum over c of w[r, c] * in[i,
/// c]. Reference: dequantised weights, float activations, double sums. Fast: int8 activations for quantised
/// weights, in two planes where a block is fine (gpu/activation.hpp). A row's result does not depend on
/// `rows` nor on the other rows, bit for bit per instruction set.
struct MatMul {
  Activation in;
  std::int64_t rows = 0;
  std::array<Projection, 3> projections{};
  std::int32_t count = 0;

  void add(const Matrix& w, float* out, std::int64_t out_stride, bool accumulate = false) {
    assert(count < 3);
    projections[static_cast<std::size_t>(count++)] = {w, out, out_stride, accumulate};
  }
};

void mat_mul_reference(const MatMul& op, std::int64_t chunk, std::int64_t chunks);

}  // namespace helios::gpu
