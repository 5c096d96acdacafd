#pragma once
#include <cstdint>

#include "gpu/kv_layout.hpp"

namespace helios::gpu {

/// Causal attention over the paged cache: row i of head h attends positions 0..meta[i].position of its table,
/// kv head h / (heads / kv_heads). Rows written by RopeKvWrite earlier in the same step are there. q, out
/// [rows, heads * head_dim]. Scores and sums in f32, in splits of kSplit positions that begin at multiples of
/// kSplit, so that a row's result depends on nothing but its own cache and query. Source: online softmax,
/// Milakov and Gimelshein 2018, arXiv:1805.02867.
struct Attention {
  static constexpr std::int32_t kSplit = 64;

  const float* q = nullptr;
  std::int64_t q_stride = 0;  // floats between rows of q
  std::int64_t rows = 0;
  std::int32_t heads = 0;  // a multiple of kv.kv_heads
  float scale = 0.0F;      // 1/sqrt(head_dim) usually
  const RowMeta* meta = nullptr;
  KvLayerView kv;
  float* out = nullptr;
  std::int64_t out_stride = 0;
};

void attention_reference(const Attention& op, std::int64_t chunk, std::int64_t chunks);

}  // namespace helios::gpu
