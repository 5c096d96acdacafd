#pragma once
#include <cstdint>

#include "gpu/kv_layout.hpp"

namespace helios::gpu {

/// Raw residual rows to and from their pages, for exact catch-up. x [.., cols]; row_index as in NormPack.
/// f32 pages round-trip bit for bit, f16 pages round to nearest even.
struct RowStore {
  enum class Direction : std::uint8_t { save, load };
  Direction direction = Direction::save;
  float* x = nullptr;  // read by save, written by load
  std::int64_t rows = 0;
  const RowMeta* meta = nullptr;            // [rows]; table indexes pages.tables
  const std::int32_t* row_index = nullptr;  // row of x; null: row i is row i
  RowPagesView pages;
};

void row_store_reference(const RowStore& op, std::int64_t chunk, std::int64_t chunks);

}  // namespace helios::gpu
