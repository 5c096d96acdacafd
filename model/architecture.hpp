#pragma once
// A transformer as a table of parts: an architecture is one row here and the names in its files.

#include <cstdint>
#include <string_view>

#include "gpu/kernels/norm_pack.hpp"

namespace helios::model {

enum class RopeKind : std::uint8_t {
  none,
  neighbours,  // pairs (2i, 2i + 1): GGUF's llama, whose q and k rows are permuted for it
  halves,      // pairs (i, i + dims/2): Hugging Face's weights, GGUF's qwen2
};
enum class MlpKind : std::uint8_t {
  silu_gated,  // down(silu(gate(x)) * up(x))
  relu,        // down(relu(up(x)))
};

/// The parts of one model. All are pre-norm decoders with grouped-query attention over a residual.
struct TransformerParts {
  gpu::NormPack::Kind norm = gpu::NormPack::Kind::rms;
  bool norm_bias = false;
  bool qkv_bias = false;  // of q, k and v together
  bool o_bias = false;
  MlpKind mlp = MlpKind::silu_gated;
  bool mlp_bias = false;  // of gate, up and down
  RopeKind rope = RopeKind::neighbours;
  bool learned_positions = false;  // a table that is added to the embedding, row = position + offset
  std::int32_t position_offset = 0;
};

/// One kind of model. Biases that `parts` does not have may be allowed: some files of the kind have them.
struct Architecture {
  std::string_view name;               // general.architecture of a GGUF file, and the prefix of its keys
  std::string_view hugging_face_name;  // in "architectures" of config.json
  TransformerParts parts;              // rope: of GGUF files
  bool may_have_biases = false;  // of attention, and of the MLP
};

/// Null when there is none.
const Architecture* find_architecture(std::string_view name) noexcept;
const Architecture* find_hugging_face_architecture(std::string_view name) noexcept;

/// "llama, qwen2, opt": for messages.
std::string_view architecture_names() noexcept;
std::string_view hugging_face_names() noexcept;

}  // namespace helios::model
