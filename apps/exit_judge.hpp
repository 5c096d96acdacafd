#pragma once
// Exits judged against full depth: the model answers prompts with all layers, then each exit chooses on the
// same prefixes.

#include <memory>
#include <span>
#include <vector>

#include "actors/policy/learn_then_test.hpp"
#include "gpu/device.hpp"
#include "model/model_file.hpp"
#include "model/transformer.hpp"

namespace helios::apps {

class ExitJudge {
 public:
  /// Loads all layers; waits. Errors: those of Transformer::create and of the loads.
  static Result<ExitJudge> create(gpu::Device& device, std::shared_ptr<const model::ModelFile> file);

  /// Full depth's greedy answer of at most max_tokens (an end token is its last).
  Result<std::vector<std::int32_t>> answer(std::span<const std::int32_t> prompt, int max_tokens);
  /// What the exit at `layer` chooses at each position of the answer, after prompt and the answer's tokens
  /// before it.
  Result<std::vector<actors::policy::JudgedToken>> judge(int layer, std::span<const std::int32_t> prompt,
                                                         std::span<const std::int32_t> answer);

 private:
  ExitJudge() = default;
  std::shared_ptr<const model::ModelFile> file_;
  std::unique_ptr<model::Transformer> transformer_;
};

}  // namespace helios::apps
