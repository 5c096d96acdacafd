#pragma once
// A checked plan as device operations.

#include <vector>

#include "gpu/command_list.hpp"
#include "model/step_draft.hpp"
#include "model/weights.hpp"
#include "model/workspace.hpp"

namespace helios::model {

/// What a program is built from; all borrowed.
struct ForwardParts {
  const ModelConfig* config = nullptr;
  const KvCache* cache = nullptr;
  const GlobalWeights* globals = nullptr;
  const std::vector<LayerWeights>* layers = nullptr;
  const Workspace* workspace = nullptr;
};

/// Writes the step's tables and indices into the workspace and builds its program.
class ForwardProgram {
 public:
  ForwardProgram(const ForwardParts& parts, const StepPlan& plan, const StepDraft& draft);

  gpu::CommandList build();
  /// Row of the logits of each output of the plan; known after build().
  const std::vector<std::int32_t>& slots() const noexcept { return slots_; }

 private:
  using Rows = std::vector<std::int32_t>;  // row numbers of the plan
  struct Run {
    std::int64_t first = 0, count = 0;
  };
  struct Gather {
    const std::int32_t* index = nullptr;
    const gpu::RowMeta* meta = nullptr;
    std::int64_t count = 0;
  };

  void write_inputs();
  void write_tables();
  void write_params();
  gpu::KvLayerView kv_view(int layer) const;
  gpu::RowPagesView row_view() const;
  template <class Predicate>
  std::vector<Run> runs(Predicate active) const;
  template <class Predicate>
  Rows rows_where(Predicate take) const;
  Gather gather(const Rows& rows);
  void store_rows(gpu::RowStore::Direction direction, const Rows& rows);
  void attention_part(const LayerWeights& w, const gpu::KvLayerView& kv, float* x, const gpu::RowMeta* meta,
                      const std::vector<Run>& runs);
  void feed_forward_part(const LayerWeights& w, float* x, const std::vector<Run>& runs);
  void layer(int layer);
  void shared_outputs();
  void exit_outputs(const ExitWeights& exit, int pseudo_layer);
  void norm(const float* x, const std::int32_t* index, std::int64_t rows, const float* weight,
            const float* bias);
  void add_bias(float* x, const float* bias, std::int64_t rows, std::int64_t cols);
  void head(const float* x, const std::int32_t* index, std::int64_t rows, const float* norm_weight,
            const float* norm_bias, const gpu::Matrix& w, std::int32_t slot);
  const ExitWeights* exit_at(int depth) const;

  const ForwardParts& parts_;
  const ModelConfig& config_;
  const Workspace& work_;
  const StepPlan& plan_;
  const StepDraft& draft_;
  gpu::CommandList ops_;
  std::vector<std::int32_t> slots_;
  std::int32_t next_slot_ = 0;
  std::size_t index_used_ = 0;
  std::int64_t table_stride_ = 0;
};

}  // namespace helios::model
