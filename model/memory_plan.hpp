#pragma once
// What a model takes of a device, to the byte, before anything is loaded.

#include <cstdint>
#include <string>
#include <vector>

#include "gpu/device.hpp"
#include "model/model_file.hpp"
#include "model/transformer.hpp"

namespace helios::model {

/// Device bytes by use. KV and rows are per token and layer; sequences hold whole blocks of block_tokens.
struct MemoryPlan {
  int layers = 0;
  std::vector<std::size_t> layer_bytes;  // packed weights, by layer
  std::size_t global_bytes = 0;          // embedding, norm, head, exits
  std::size_t head_bytes = 0;            // of the head's matrix (counted in global_bytes)
  std::size_t workspace_bytes = 0;
  std::size_t kv_bytes_per_token_layer = 0;
  std::size_t row_bytes_per_token = 0;  // stored residual; 0 when rows are not kept
  int block_tokens = 0;
  std::vector<int> block_exits;  // exits with KV of their own

  static MemoryPlan make(const gpu::Device& device, const ModelFile& file, const TransformerOptions& options);

  /// Weights of layers 1..depth and globals.
  std::size_t weight_bytes(int depth) const;
  /// KV and rows of one token at `depth`.
  std::size_t token_bytes(int depth) const;
  /// One sequence of `tokens`, in whole blocks.
  std::size_t sequence_bytes(std::int64_t tokens, int depth) const;
  /// Smallest budget that runs one sequence of `tokens`.
  std::size_t needed_bytes(std::int64_t tokens, int depth) const;
  /// Tokens that fit a budget beside the weights, all sequences together; 0 when the weights do not fit.
  std::int64_t max_tokens(std::size_t budget, int depth) const;
  /// Sequences of `tokens` each.
  std::int64_t max_sequences(std::size_t budget, std::int64_t tokens, int depth) const;
  /// Deepest depth that leaves room for one sequence of `tokens`; 0: none.
  int max_depth(std::size_t budget, std::int64_t tokens) const;
  /// The plan for a budget in a few lines, for people. Says what to change when it does not fit.
  std::string explain(std::size_t budget, int depth) const;
};

/// Bytes of a transformer's workspace.
std::size_t workspace_bytes(const ModelConfig& config, const TransformerOptions& options, int pseudo_layers);

}  // namespace helios::model
