#include "model/memory_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "model/workspace.hpp"

namespace helios::model {

namespace {

std::string mib(std::size_t bytes) {
  return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / (1 << 20));
}

}  // namespace

std::size_t workspace_bytes(const ModelConfig& config, const TransformerOptions& options, int pseudo_layers) {
  return Workspace::place(config, options, pseudo_layers, nullptr).bytes;
}

MemoryPlan MemoryPlan::make(const gpu::Device& device, const ModelFile& file,
                            const TransformerOptions& options) {
  const ModelConfig& c = file.config();
  MemoryPlan plan;
  plan.layers = c.layers;
  for (int layer = 0; layer < c.layers; ++layer)
    plan.layer_bytes.push_back(layer_device_bytes(device, file, layer));
  plan.global_bytes = global_device_bytes(device, file);
  const GlobalTensors& globals = file.globals();
  const StoredTensor* head = globals.head != nullptr ? globals.head : globals.embedding;
  plan.head_bytes = device.packed_bytes(head->held, head->rows(), head->cols());
  if (file.exits() != nullptr) plan.block_exits = file.exits()->block_layers();
  plan.workspace_bytes = model::workspace_bytes(c, options, static_cast<int>(plan.block_exits.size()));
  plan.kv_bytes_per_token_layer =
      2 * static_cast<std::size_t>(c.kv_width()) * gpu::block_bytes(options.kv_type);
  plan.row_bytes_per_token =
      options.keep_rows ? static_cast<std::size_t>(c.hidden) * gpu::block_bytes(options.row_type) : 0;
  plan.block_tokens = options.block_tokens;
  return plan;
}

std::size_t MemoryPlan::weight_bytes(int depth) const {
  return std::accumulate(layer_bytes.begin(), layer_bytes.begin() + depth, global_bytes);
}

std::size_t MemoryPlan::token_bytes(int depth) const {
  const bool block = std::find(block_exits.begin(), block_exits.end(), depth) != block_exits.end();
  const std::size_t kv = kv_bytes_per_token_layer * (static_cast<std::size_t>(depth) + (block ? 1 : 0));
  return kv + (depth < layers ? row_bytes_per_token : 0);
}

std::size_t MemoryPlan::sequence_bytes(std::int64_t tokens, int depth) const {
  const std::int64_t blocks = (tokens + block_tokens - 1) / block_tokens;
  return static_cast<std::size_t>(blocks * block_tokens) * token_bytes(depth);
}

std::size_t MemoryPlan::needed_bytes(std::int64_t tokens, int depth) const {
  return weight_bytes(depth) + workspace_bytes + sequence_bytes(tokens, depth);
}

std::int64_t MemoryPlan::max_tokens(std::size_t budget, int depth) const {
  const std::size_t fixed = weight_bytes(depth) + workspace_bytes;
  if (budget <= fixed) return 0;
  const std::size_t block = token_bytes(depth) * static_cast<std::size_t>(block_tokens);
  return static_cast<std::int64_t>((budget - fixed) / block) * block_tokens;
}

std::int64_t MemoryPlan::max_sequences(std::size_t budget, std::int64_t tokens, int depth) const {
  const std::size_t fixed = weight_bytes(depth) + workspace_bytes;
  if (budget <= fixed || tokens <= 0) return 0;
  return static_cast<std::int64_t>((budget - fixed) / sequence_bytes(tokens, depth));
}

int MemoryPlan::max_depth(std::size_t budget, std::int64_t tokens) const {
  for (int depth = layers; depth > 0; --depth) {
    if (needed_bytes(tokens, depth) <= budget) return depth;
  }
  return 0;
}

std::string MemoryPlan::explain(std::size_t budget, int depth) const {
  constexpr std::int64_t kTypical = 1024;  // tokens of one conversation
  std::string text = fmt::format(
      "weights of layers 1-{}: {}; embedding, norm, head and exits: {} (head {}); workspace: {}\n"
      "each token: {} bytes at depth {} (KV {} per layer{})\n",
      depth, mib(weight_bytes(depth) - global_bytes), mib(global_bytes), mib(head_bytes),
      mib(workspace_bytes), token_bytes(depth), depth, kv_bytes_per_token_layer,
      depth < layers && row_bytes_per_token > 0 ? fmt::format(", stored row {}", row_bytes_per_token) : "");
  const std::int64_t tokens = max_tokens(budget, depth);
  if (tokens > 0) {
    return text + fmt::format("a budget of {} leaves room for {} tokens, or {} sequences of {}", mib(budget),
                              tokens, max_sequences(budget, kTypical, depth), kTypical);
  }
  const int deepest = max_depth(budget, block_tokens);
  return text + fmt::format("a budget of {} is too small: {} are needed; {}", mib(budget),
                            mib(needed_bytes(block_tokens, depth)),
                            deepest > 0
                                ? fmt::format("exit layer {} would fit", deepest)
                                : std::string("no depth fits: raise --memory or take a smaller model"));
}

}  // namespace helios::model
