#pragma once
// Paged memory as kernels see it: keys and values, and stored residual rows.

#include <cstddef>
#include <cstdint>

#include "gpu/data_type.hpp"

namespace helios::gpu {

/// Where a row of a step belongs.
struct RowMeta {
  std::int32_t position = 0;  // in its sequence, 0-based
  std::int32_t table = 0;     // row of the block tables
};

/// KV cache of one layer. Block b starts at base + b * block_bytes: keys [kv_heads, block_tokens, head_dim],
/// then values of the same shape. Position p of table t is slot p % block_tokens of block tables[t *
/// table_stride + p / block_tokens].
struct KvLayerView {
  std::byte* base = nullptr;
  DataType type = DataType::f16;  // f16 or f32
  std::int32_t block_tokens = 0;
  std::int32_t kv_heads = 0, head_dim = 0;
  const std::int32_t* tables = nullptr;
  std::int64_t table_stride = 0;
  std::size_t block_bytes = 0;
};

constexpr std::size_t kv_block_bytes(DataType type, std::int32_t block_tokens, std::int32_t kv_heads,
                                     std::int32_t head_dim) noexcept {
  return 2 * static_cast<std::size_t>(block_tokens) * static_cast<std::size_t>(kv_heads) *
         static_cast<std::size_t>(head_dim) * block_bytes(type);
}

/// Residual rows of one depth, paged alike: block = [block_tokens, cols].
struct RowPagesView {
  std::byte* base = nullptr;
  DataType type = DataType::f16;  // f16 or f32
  std::int32_t block_tokens = 0;
  std::int64_t cols = 0;
  const std::int32_t* tables = nullptr;
  std::int64_t table_stride = 0;
  std::size_t block_bytes = 0;
};

constexpr std::size_t row_block_bytes(DataType type, std::int32_t block_tokens, std::int64_t cols) noexcept {
  return static_cast<std::size_t>(block_tokens) * row_bytes(type, cols);
}

}  // namespace helios::gpu
