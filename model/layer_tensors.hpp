#pragma once
// Which tensors a layer has, by its model's parts: one table for checks, sizes and loads.

#include <span>

#include "model/checkpoint.hpp"
#include "model/config.hpp"

namespace helios::model {

/// The tensors of a layer; null: not part of this model.
struct LayerTensors {
  const StoredTensor *attention_norm = nullptr, *attention_norm_bias = nullptr;
  const StoredTensor *q = nullptr, *k = nullptr, *v = nullptr, *o = nullptr;
  const StoredTensor *q_bias = nullptr, *k_bias = nullptr, *v_bias = nullptr, *o_bias = nullptr;
  const StoredTensor *feed_forward_norm = nullptr, *feed_forward_norm_bias = nullptr;
  const StoredTensor *gate = nullptr, *up = nullptr, *down = nullptr;
  const StoredTensor *gate_bias = nullptr, *up_bias = nullptr, *down_bias = nullptr;
};

/// The tensors outside layers.
struct GlobalTensors {
  const StoredTensor* embedding = nullptr;
  const StoredTensor *norm = nullptr, *norm_bias = nullptr;
  const StoredTensor* head = nullptr;          // null: tied, the embedding
  const StoredTensor* positions = nullptr;     // [context + offset, hidden]
  const StoredTensor* rope_factors = nullptr;  // read when the file is opened
};

/// Side of a tensor, by the configuration.
enum class Side : std::uint8_t { one, hidden, query, key_value, feed_forward };

std::int64_t extent(Side side, const ModelConfig& config) noexcept;

struct LayerTensorRow {
  const char* name;  // within "blk.{i}."
  const StoredTensor* LayerTensors::* member;
  Side rows, cols;
  bool (*wanted)(const TransformerParts& parts);
};

/// In the order in which they are loaded and used.
std::span<const LayerTensorRow> layer_tensor_table() noexcept;

/// Finds and checks the tensors of one layer (0-based), or those outside layers. Errors: bad_file (one is
/// missing or has another shape than the configuration: names it), unsupported (a tensor that no part of ours
/// uses, a vector that is quantised: by name).
Result<LayerTensors> find_layer(const Checkpoint& checkpoint, const ModelConfig& config, int layer);
Result<GlobalTensors> find_globals(const Checkpoint& checkpoint, const ModelConfig& config);

/// Bytes in the files.
std::size_t file_bytes(const LayerTensors& tensors) noexcept;
std::size_t file_bytes(const GlobalTensors& tensors) noexcept;

}  // namespace helios::model
