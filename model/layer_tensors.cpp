#include "model/layer_tensors.hpp"

#include <fmt/format.h>

namespace helios::model {

namespace {

using P = TransformerParts;
using T = LayerTensors;

bool always(const P&) {
  return true;
}
bool norm_bias(const P& p) {
  return p.norm_bias;
}
bool qkv_bias(const P& p) {
  return p.qkv_bias;
}
bool o_bias(const P& p) {
  return p.o_bias;
}
bool gated(const P& p) {
  return p.mlp == MlpKind::silu_gated;
}
bool gate_bias(const P& p) {
  return gated(p) && p.mlp_bias;
}
bool mlp_bias(const P& p) {
  return p.mlp_bias;
}

constexpr LayerTensorRow kRows[] = {
    {"attn_norm.weight", &T::attention_norm, Side::one, Side::hidden, always},
    {"attn_norm.bias", &T::attention_norm_bias, Side::one, Side::hidden, norm_bias},
    {"attn_q.weight", &T::q, Side::query, Side::hidden, always},
    {"attn_k.weight", &T::k, Side::key_value, Side::hidden, always},
    {"attn_v.weight", &T::v, Side::key_value, Side::hidden, always},
    {"attn_q.bias", &T::q_bias, Side::one, Side::query, qkv_bias},
    {"attn_k.bias", &T::k_bias, Side::one, Side::key_value, qkv_bias},
    {"attn_v.bias", &T::v_bias, Side::one, Side::key_value, qkv_bias},
    {"attn_output.weight", &T::o, Side::hidden, Side::query, always},
    {"attn_output.bias", &T::o_bias, Side::one, Side::hidden, o_bias},
    {"ffn_norm.weight", &T::feed_forward_norm, Side::one, Side::hidden, always},
    {"ffn_norm.bias", &T::feed_forward_norm_bias, Side::one, Side::hidden, norm_bias},
    {"ffn_gate.weight", &T::gate, Side::feed_forward, Side::hidden, gated},
    {"ffn_gate.bias", &T::gate_bias, Side::one, Side::feed_forward, gate_bias},
    {"ffn_up.weight", &T::up, Side::feed_forward, Side::hidden, always},
    {"ffn_up.bias", &T::up_bias, Side::one, Side::feed_forward, mlp_bias},
    {"ffn_down.weight", &T::down, Side::hidden, Side::feed_forward, always},
    {"ffn_down.bias", &T::down_bias, Side::one, Side::hidden, mlp_bias},
};

/// Names that mark a variant whose forward pass is another one.
constexpr const char* kForeign[] = {"ffn_gate_exps.weight", "attn_q_norm.weight", "attn_qkv.weight",
                                    "post_attention_norm.weight"};

Result<const StoredTensor*> find_shaped(const Checkpoint& checkpoint, const std::string& name,
                                        std::int64_t rows, std::int64_t cols) {
  const Result<const StoredTensor*> tensor = checkpoint.require(name);
  if (!tensor) return tensor.error();
  if ((*tensor)->rows() != rows || (*tensor)->cols() != cols) {
    return fail(Errc::bad_file,
                fmt::format("{}: {} is {} x {}, the configuration needs {} x {}", checkpoint.path(),
                            checkpoint.shown_name(name), (*tensor)->rows(), (*tensor)->cols(), rows, cols));
  }
  if (rows == 1 && gpu::is_quantised((*tensor)->type)) {
    return fail(Errc::unsupported,
                fmt::format("{}: {} is {}: vectors must be F32, F16 or BF16", checkpoint.path(),
                            checkpoint.shown_name(name), to_string((*tensor)->type)));
  }
  return *tensor;
}

Error foreign(const Checkpoint& checkpoint, const ModelConfig& config, const std::string& name) {
  return fail(Errc::unsupported, fmt::format("{}: {}: this variant of {} is not supported", checkpoint.path(),
                                             checkpoint.shown_name(name), config.architecture));
}

}  // namespace

std::int64_t extent(Side side, const ModelConfig& c) noexcept {
  switch (side) {
    case Side::one:
      return 1;
    case Side::hidden:
      return c.hidden;
    case Side::query:
      return c.q_width();
    case Side::key_value:
      return c.kv_width();
    case Side::feed_forward:
      return c.feed_forward;
  }
  return 0;
}

std::span<const LayerTensorRow> layer_tensor_table() noexcept {
  return kRows;
}

Result<LayerTensors> find_layer(const Checkpoint& checkpoint, const ModelConfig& config, int layer) {
  LayerTensors tensors;
  const std::string prefix = fmt::format("blk.{}.", layer);
  for (const LayerTensorRow& row : kRows) {
    const std::string name = prefix + row.name;
    if (!row.wanted(config.parts)) {
      if (checkpoint.find(name) != nullptr) return foreign(checkpoint, config, name);
      continue;
    }
    const Result<const StoredTensor*> tensor =
        find_shaped(checkpoint, name, extent(row.rows, config), extent(row.cols, config));
    if (!tensor) return tensor.error();
    tensors.*row.member = *tensor;
  }
  for (const char* name : kForeign) {
    if (checkpoint.find(prefix + name) != nullptr) return foreign(checkpoint, config, prefix + name);
  }
  return tensors;
}

Result<GlobalTensors> find_globals(const Checkpoint& checkpoint, const ModelConfig& config) {
  GlobalTensors tensors;
  struct Row {
    const char* name;
    const StoredTensor** to;
    std::int64_t rows;
    bool wanted;
  };
  const std::int64_t positions = std::int64_t{config.context} + config.parts.position_offset;
  const Row rows[] = {
      {"token_embd.weight", &tensors.embedding, config.vocab, true},
      {"output_norm.weight", &tensors.norm, 1, true},
      {"output_norm.bias", &tensors.norm_bias, 1, config.parts.norm_bias},
      {"output.weight", &tensors.head, config.vocab, !config.tied_head},
      {"position_embd.weight", &tensors.positions, positions, config.parts.learned_positions},
  };
  for (const Row& row : rows) {
    if (!row.wanted) continue;
    const Result<const StoredTensor*> tensor = find_shaped(checkpoint, row.name, row.rows, config.hidden);
    if (!tensor) return tensor.error();
    *row.to = *tensor;
  }
  if (config.parts.rope != RopeKind::none) tensors.rope_factors = checkpoint.find("rope_freqs.weight");
  if (tensors.positions != nullptr && gpu::is_quantised(tensors.positions->type)) {
    return fail(Errc::unsupported, fmt::format("{}: position_embd.weight is {}: it must be F32, F16 or BF16",
                                               checkpoint.path(), to_string(tensors.positions->type)));
  }
  for (const char* name : {"output.bias", "token_embd_norm.weight"}) {
    if (checkpoint.find(name) != nullptr) return foreign(checkpoint, config, name);
  }
  return tensors;
}

std::size_t file_bytes(const LayerTensors& tensors) noexcept {
  std::size_t bytes = 0;
  for (const LayerTensorRow& row : kRows) {
    if (const StoredTensor* tensor = tensors.*row.member) bytes += static_cast<std::size_t>(tensor->bytes);
  }
  return bytes;
}

std::size_t file_bytes(const GlobalTensors& t) noexcept {
  std::size_t bytes = 0;
  for (const StoredTensor* tensor : {t.embedding, t.norm, t.norm_bias, t.head, t.positions, t.rope_factors}) {
    if (tensor != nullptr) bytes += static_cast<std::size_t>(tensor->bytes);
  }
  return bytes;
}

}  // namespace helios::model
