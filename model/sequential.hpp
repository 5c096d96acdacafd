#pragma once
// One sequence on one device, blocking, without actors: for tests, inspection and small programs.

#include <functional>
#include <memory>
#include <vector>

#include "model/transformer.hpp"

namespace helios::model {

/// Loads globals and layers [resident, depth) and waits for them. Errors: those of the loads.
Result<void> load_layers(gpu::Device& device, const std::shared_ptr<const ModelFile>& file,
                         Transformer& transformer, int depth);

/// Runs a plan and waits for it. The results are the transformer's, until its next step.
Result<std::span<const StepResult>> run_step(Transformer& transformer, const StepPlan& plan);

class Sequential {
 public:
  /// `transformer` outlives it and holds at least `depth` layers.
  Sequential(Transformer& transformer, int depth) : transformer_(transformer), depth_(depth) {}

  int depth() const noexcept { return depth_; }
  /// Positions run so far.
  int position() const noexcept { return position_; }
  KvCache::Sequence& sequence() noexcept { return sequence_; }

  /// Runs `ids` (in chunks of at most `chunk` rows, 0: as many as fit) and gives the last one's result.
  Result<StepResult> feed(std::span<const std::int32_t> ids, const Sampling& sampling = {},
                          bool want_logits = false, int chunk = 0);
  /// feed(prompt), then one token at a time until max_tokens or an end token (kept as the last id).
  Result<std::vector<std::int32_t>> generate(std::span<const std::int32_t> prompt, const Sampling& sampling);
  /// Fills layers [depth(), depth) from the stored rows, exactly, in chunks; rows run to `depth` from then
  /// on.
  Result<void> catch_up(int depth, int chunk = 0);

 private:
  Transformer& transformer_;
  int depth_;
  int position_ = 0;
  std::uint64_t counter_ = 0;  // tokens chosen so far
  KvCache::Sequence sequence_;
};

}  // namespace helios::model
