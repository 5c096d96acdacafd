#pragma once
// The forward pass: rows of many sequences, each through its own range of layers.

#include <memory>
#include <span>
#include <vector>

#include "gpu/device.hpp"
#include "model/kv_cache.hpp"
#include "model/model_file.hpp"
#include "model/step.hpp"
#include "model/weights.hpp"
#include "runtime/result.hpp"

namespace helios::model {

struct TransformerOptions {
  gpu::DataType kv_type = gpu::DataType::f16;   // f16 or f32
  gpu::DataType row_type = gpu::DataType::f16;  // f16 or f32 (exact catch-up)
  bool keep_rows = true;                        // store residuals of rows that end below L
  int max_rows = 256;                           // of one step
  int max_outputs = 32;                         // of one step
  int max_sequences = 0;                        // of one step; 0: max_outputs
  int block_tokens = 32;
};

/// One model on one device. Not thread-safe: one owner, one step in flight. Device and file outlive it.
class Transformer {
 public:
  /// Reserves the workspace; no weights yet. Errors: out_of_memory, bad_request (an option), device_fault.
  static Result<std::unique_ptr<Transformer>> create(gpu::Device& device,
                                                     std::shared_ptr<const ModelFile> file,
                                                     TransformerOptions options);
  ~Transformer();

  // Between steps only. Layers are adopted in order: layer == resident_layers().
  void adopt(GlobalWeights weights);
  void adopt(int layer, LayerWeights weights);
  /// Frees layers [keep, resident).
  void drop_layers(int keep);
  int resident_layers() const noexcept;
  bool has_globals() const noexcept;
  /// Device bytes of all weights held.
  std::size_t weight_bytes() const noexcept;
  std::size_t workspace_bytes() const noexcept;

  const std::shared_ptr<KvCache>& kv_cache() const noexcept;
  const ModelConfig& config() const noexcept;
  const TransformerOptions& options() const noexcept;

  /// Enqueues one step and returns. Sequences and samplings of the plan are borrowed, and must not be
  /// touched, until the event is done. A row writes the KV of its layers, so a sequence needs blocks for it
  /// (KvCache::reserve) and the KV of all earlier positions in these layers. Errors (nothing has run,
  /// sequences are as before): bad_request (a row or output that cannot be: says which and why), busy (the
  /// last step is not done).
  Result<gpu::Event> start(const StepPlan& plan);
  /// One result per output of the last plan. Valid after its event was done without an error, until the next
  /// start().
  std::span<const StepResult> results();

 private:
  struct Parts;
  explicit Transformer(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace helios::model
