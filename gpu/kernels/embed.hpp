#pragma once
#include <cstdint>

#include "gpu/matrix.hpp"

namespace helios::gpu {

/// out[i] = table[ids[i]], widened to f32. out [rows, table.cols]. ids in [0, table.rows); others give NaN
/// rows.
struct Embed {
  Matrix table;
  const std::int32_t* ids = nullptr;
  std::int64_t rows = 0;
  float* out = nullptr;
};

void embed_reference(const Embed& op, std::int64_t chunk, std::int64_t chunks);

}  // namespace helios::gpu
