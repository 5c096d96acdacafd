#pragma once
#include <cstdint>

#include "gpu/kv_layout.hpp"

namespace helios::gpu {

/// x[i] += table[meta[i].position + offset]: learned positions. x [rows, cols]; table [table_rows, cols] f32,
/// row-major. A position without a row gives a NaN row.
struct AddPositions {
  float* x = nullptr;
  const float* table = nullptr;
  const RowMeta* meta = nullptr;  // [rows]
  std::int64_t rows = 0, cols = 0;
  std::int64_t table_rows = 0;
  std::int32_t offset = 0;
};

void add_positions_reference(const AddPositions& op, std::int64_t chunk, std::int64_t chunks);

}  // namespace helios::gpu
