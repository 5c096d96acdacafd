#pragma once
#include <cstdint>

#include "gpu/activation.hpp"

namespace helios::gpu {

/// y = max(0, x + bias), packed. x [rows, cols]; bias [cols] may be null. NaN stays NaN.
struct ReluPack {
  const float* x = nullptr;
  const float* bias = nullptr;
  std::int64_t rows = 0, cols = 0;
  Activation out;
};

void relu_pack_reference(const ReluPack& op, std::int64_t chunk, std::int64_t chunks);

}  // namespace helios::gpu
