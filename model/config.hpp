#pragma once
// The shape of a model.

#include <cstdint>
#include <string>

#include "model/gguf.hpp"
#include "runtime/result.hpp"

namespace helios::model {

/// A Llama-architecture decoder: pre-norm, grouped-query attention, RoPE, SiLU-gated feed-forward.
struct ModelConfig {
  std::string architecture;
  std::string name;  // as the file calls itself; may be empty
  int layers = 0;
  std::int64_t hidden = 0;
  std::int64_t feed_forward = 0;
  int heads = 0, kv_heads = 0, head_dim = 0;
  std::int64_t vocab = 0;
  int context = 0;  // positions the model was trained for
  float norm_epsilon = 1e-5F;
  int rope_dims = 0;
  float rope_base = 10000.0F;
  float rope_scale = 1.0F;  // of positions (linear scaling)
  bool tied_head = false;   // the head is the embedding

  std::int64_t q_width() const noexcept { return std::int64_t{heads} * head_dim; }
  std::int64_t kv_width() const noexcept { return std::int64_t{kv_heads} * head_dim; }

  /// Reads llama.* and checks it against the tensors' shapes.
  /// Errors: unsupported (another architecture, experts, a RoPE scaling we do not have: by name), bad_file (a
  /// key or tensor is missing, out of range, or disagrees).
  static Result<ModelConfig> from_gguf(const GgufFile& file);
};

}  // namespace helios::model
