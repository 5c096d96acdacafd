#pragma once
#include <cstdint>

#include "gpu/activation.hpp"

namespace helios::gpu {

/// y = silu(gate) * up, silu(x) = x / (1 + exp(-x)), packed. gate, up [rows, cols] with `stride` floats
/// between rows.
struct SiluMulPack {
  const float* gate = nullptr;
  const float* up = nullptr;
  std::int64_t stride = 0;  // 0: cols
  std::int64_t rows = 0, cols = 0;
  Activation out;
};

void silu_mul_pack_reference(const SiluMulPack& op, std::int64_t chunk, std::int64_t chunks);

}  // namespace helios::gpu
