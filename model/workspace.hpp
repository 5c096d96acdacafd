#pragma once
// The device memory of one step: activations, tables, logits. Reserved once, so steps allocate nothing.

#include <cstdint>

#include "gpu/activation.hpp"
#include "gpu/device.hpp"
#include "model/transformer.hpp"

namespace helios::model {

/// Pointers into one slab. R = max_rows, O = max_outputs, S = max_sequences.
struct Workspace {
  float* x = nullptr;         // [R, hidden] residual
  float* y = nullptr;         // [R, hidden] residual of exit heads
  float* qkv = nullptr;       // [R, q + 2 kv]
  float* attended = nullptr;  // [R, q]
  float* gate = nullptr;      // [R, feed_forward]; null without a gate
  float* up = nullptr;        // [R, feed_forward]
  gpu::Activation normed, attended_packed, gated;
  float* logits = nullptr;              // [O, vocab]
  gpu::HeadStats* stats = nullptr;      // [O]
  gpu::SampleParams* params = nullptr;  // [O]
  gpu::SampleOut* sampled = nullptr;    // [O]
  std::int32_t* ids = nullptr;          // [R]
  gpu::RowMeta* meta = nullptr;         // [R]
  std::int32_t* index = nullptr;        // [index_capacity] row numbers of gathers
  gpu::RowMeta* index_meta = nullptr;   // [index_capacity] their meta
  std::int32_t* tables = nullptr;       // [table_capacity] block tables of all layers and of rows

  std::size_t index_capacity = 0, table_capacity = 0;  // elements
  std::size_t bytes = 0;

  /// Lays it out from `base`; null: sizes only.
  static Workspace place(const ModelConfig& config, const TransformerOptions& options, int pseudo_layers,
                         std::byte* base);
};

int max_sequences(const TransformerOptions& options);

}  // namespace helios::model
