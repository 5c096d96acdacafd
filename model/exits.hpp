#pragma once
// Exit heads: logits = head(norm(block(adapter(h)))), each part optional. Format: `*.exits.safetensors`.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "model/checkpoint.hpp"
#include "model/config.hpp"
#include "model/safetensors.hpp"
#include "runtime/result.hpp"

namespace helios::model {

/// A tensor of an exits file in place. Q8_0 is stored as U8 of shape [rows, cols / 32 * 34].
struct ExitTensor {
  const SafetensorsTensor* tensor = nullptr;  // null: absent
  gpu::DataType type = gpu::DataType::f32;
  std::int64_t rows = 0, cols = 0;
  explicit operator bool() const noexcept { return tensor != nullptr; }
};

/// One projection of a block: a whole matrix, or base layer + lora_b * lora_a * scale.
struct ExitProjection {
  ExitTensor weight, lora_a, lora_b;
};

/// A transformer layer of the exit's own, in the model's own names within a layer (`self_attn.q_proj.weight`,
/// …; q and k in Hugging Face's row order).
struct ExitBlock {
  int base_layer = -1;  // 0-based; what is absent comes from this layer of the model
  float lora_scale = 1.0F;
  ExitProjection q, k, v, o, gate, up, down;
  ExitTensor q_bias, k_bias, v_bias;  // of models that have them
  ExitTensor attention_norm, feed_forward_norm;
};

struct ExitHead {
  int layer = 0;  // layers run before it, 1..L
  ExitTensor adapter_weight, adapter_bias;
  std::optional<ExitBlock> block;
  ExitTensor norm, norm_bias;      // absent: the model's; of a layer norm both or none
  ExitTensor head;                 // absent: the model's
  std::optional<float> threshold;  // calibrated confidence; absent: uncalibrated
};

/// An exits file that was checked against its model. Metadata, all strings: `layers`, `hidden`, `vocab`,
/// `vocab_hash` (Vocabulary::hash), `norms_hash` (below); for an exit E `exits.{E}.threshold`,
/// `exits.{E}.block.base_layer` (0-based), `exits.{E}.block.lora_scale`. Others are provenance, kept and
/// ignored.
class ExitsFile {
 public:
  /// Errors: io_error, bad_file (not an exits file, a wrong shape, an unknown tensor: by name), bad_request
  /// (made for another model: says which of shape, vocabulary or norms differs), unsupported (an element
  /// type).
  static Result<std::shared_ptr<const ExitsFile>> open(const std::string& path, const Checkpoint& model,
                                                       const ModelConfig& config,
                                                       const std::string& vocab_hash);

  /// By layer, rising.
  const std::vector<ExitHead>& heads() const noexcept { return heads_; }
  const ExitHead* find(int layer) const noexcept;
  /// Exits with a block, rising: the order of their pseudo-layers.
  std::vector<int> block_layers() const;
  const Safetensors& file() const noexcept { return *file_; }
  /// A tensor as floats, row-major. Errors: io_error.
  Result<std::vector<float>> read_floats(const ExitTensor& tensor) const;

 private:
  ExitsFile() = default;
  std::shared_ptr<const Safetensors> file_;
  std::vector<ExitHead> heads_;
};

/// FNV-1a, 64 bits, over the F32 bytes (little-endian) of each layer's attention norm and feed-forward norm
/// in layer order, then the output norm; 16 hex digits. Norms are not quantised, so GGUF and Hugging Face
/// files of one model agree. Errors: io_error, unsupported (a norm that is quantised).
Result<std::string> norms_hash(const Checkpoint& model, int layers);

}  // namespace helios::model
