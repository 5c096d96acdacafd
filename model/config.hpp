#pragma once
// The shape of a model.

#include <cstdint>
#include <string>
#include <vector>

#include "model/architecture.hpp"
#include "runtime/result.hpp"

namespace helios::model {

/// A pre-norm decoder; what it is made of is in `parts`.
struct ModelConfig {
  std::string architecture;
  std::string name;  // as the file calls itself; may be empty
  TransformerParts parts;
  int layers = 0;
  std::int64_t hidden = 0;
  std::int64_t feed_forward = 0;
  int heads = 0, kv_heads = 0, head_dim = 0;
  std::int64_t vocab = 0;
  int context = 0;  // positions the model was trained for
  float norm_epsilon = 1e-5F;
  int rope_dims = 0;  // 0 without RoPE
  float rope_base = 10000.0F;
  float rope_scale = 1.0F;          // of positions (linear scaling)
  std::vector<float> rope_factors;  // [rope_dims / 2] that divide the frequencies; empty: all 1
  bool tied_head = false;           // the head is the embedding

  std::int64_t q_width() const noexcept { return std::int64_t{heads} * head_dim; }
  std::int64_t kv_width() const noexcept { return std::int64_t{kv_heads} * head_dim; }

  /// Refuses numbers that no model has or that kernels do not take. `where` begins the message. Errors:
  /// bad_file, unsupported.
  Result<void> check(const std::string& where) const;
};

/// Llama 3's RoPE scaling: low frequencies are divided by `factor`, high ones kept, with a ramp between.
struct Llama3Scaling {
  double factor = 1.0, low_freq_factor = 1.0, high_freq_factor = 4.0, original_context = 8192.0;
};
/// ModelConfig::rope_factors for it. Source: Llama 3.1's reference code, and transformers'
/// _compute_llama3_parameters.
std::vector<float> llama3_factors(const Llama3Scaling& scaling, int rope_dims, double rope_base);

}  // namespace helios::model
