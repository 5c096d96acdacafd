#pragma once
// Where an element of a page is. One place, so that writers and readers agree.

#include <cstring>

#include "gpu/half.hpp"
#include "gpu/kv_layout.hpp"

namespace helios::gpu {

/// The key vector [head_dim] of (table, position, kv_head); the value vector is value_offset() bytes further.
inline std::byte* key_at(const KvLayerView& kv, std::int32_t table, std::int32_t position,
                         std::int32_t kv_head) noexcept {
  const std::int64_t block = kv.tables[table * kv.table_stride + position / kv.block_tokens];
  const std::int64_t slot = std::int64_t{kv_head} * kv.block_tokens + position % kv.block_tokens;
  return kv.base + static_cast<std::size_t>(block) * kv.block_bytes +
         static_cast<std::size_t>(slot * kv.head_dim) * block_bytes(kv.type);
}
inline std::size_t value_offset(const KvLayerView& kv) noexcept {
  return kv_block_bytes(kv.type, kv.block_tokens, kv.kv_heads, kv.head_dim) / 2;
}
inline std::byte* row_at(const RowPagesView& pages, RowMeta meta) noexcept {
  const std::int64_t block =
      pages.tables[meta.table * pages.table_stride + meta.position / pages.block_tokens];
  return pages.base + static_cast<std::size_t>(block) * pages.block_bytes +
         static_cast<std::size_t>(meta.position % pages.block_tokens) * row_bytes(pages.type, pages.cols);
}

inline float load_element(DataType type, const std::byte* at, std::int64_t index) noexcept {
  if (type == DataType::f32) {
    float value;
    std::memcpy(&value, at + 4 * index, 4);
    return value;
  }
  std::uint16_t half;
  std::memcpy(&half, at + 2 * index, 2);
  return half_to_float(half);
}
inline void store_element(DataType type, std::byte* at, std::int64_t index, float value) noexcept {
  if (type == DataType::f32) {
    std::memcpy(at + 4 * index, &value, 4);
  } else {
    const std::uint16_t half = float_to_half(value);
    std::memcpy(at + 2 * index, &half, 2);
  }
}

}  // namespace helios::gpu
