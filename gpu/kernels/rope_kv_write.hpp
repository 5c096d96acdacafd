#pragma once
#include <cstdint>

#include "gpu/kv_layout.hpp"

namespace helios::gpu {

/// Rotary position embedding of the first `dims` elements of each head. Pair i turns by position *
/// freq_base^(-2i/dims)
/// * scale / factors[i]. interleaved: pairs (2i, 2i+1), what GGUF's llama weights are permuted for; else
/// pairs (i, i + dims/2). Source: Su et al. 2021, arXiv:2104.09864.
struct Rope {
  std::int32_t dims = 0;  // even, <= head_dim; 0: no rotation
  float freq_base = 10000.0F;
  float scale = 1.0F;
  bool interleaved = true;
  const float* factors = nullptr;  // [dims / 2], above 0; null: all 1
};

/// Rotates q and k in place and writes k, v to the cache at each row's position. q [rows, heads * head_dim],
/// k and v [rows, kv_heads * head_dim], strides in floats. q may be null: k and v only.
struct RopeKvWrite {
  float* q = nullptr;
  float* k = nullptr;
  const float* v = nullptr;
  std::int64_t q_stride = 0, k_stride = 0, v_stride = 0;
  std::int64_t rows = 0;
  std::int32_t heads = 0;  // of q; kv_heads and head_dim are the cache's
  Rope rope;
  const RowMeta* meta = nullptr;  // [rows]
  KvLayerView kv;
};

void rope_kv_write_reference(const RopeKvWrite& op, std::int64_t chunk, std::int64_t chunks);

}  // namespace helios::gpu
