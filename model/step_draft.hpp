#pragma once
// Checks a plan against its sequences and keeps what they would be after it.

#include <vector>

#include "model/config.hpp"
#include "model/step.hpp"
#include "runtime/result.hpp"

namespace helios::model {

/// A plan is checked whole before anything changes; commit() makes the change, undo() takes it back.
class StepDraft {
 public:
  struct Limits {
    int max_rows = 0, max_outputs = 0, max_sequences = 0;
    int resident_layers = 0;
  };

  /// Errors: bad_request, naming the row or output and the rule.
  Result<void> check(const StepPlan& plan, const ModelConfig& config, const KvCache& cache,
                     const Limits& limits);

  /// Index of a row's sequence in sequences(): its row of the block tables.
  int table_of(std::size_t row) const { return tables_[row]; }
  /// Whether the residual of `row` has a page to be saved to.
  bool saves(std::size_t row) const { return saves_[row] != 0; }
  std::size_t sequence_count() const { return after_.size(); }
  KvCache::Sequence& sequence(std::size_t i) const { return *after_[i].sequence; }

  void commit() { swap(); }
  void undo() { swap(); }

 private:
  struct After {
    KvCache::Sequence* sequence = nullptr;
    std::vector<std::int32_t> filled, tokens;
    std::vector<std::int16_t> row_depths;
  };
  Result<void> check_row(const StepRow& row, std::size_t number, const ModelConfig& config,
                         const KvCache& cache, const Limits& limits);
  int find_or_add(KvCache::Sequence* sequence);
  void swap();

  std::vector<After> after_;
  std::vector<int> tables_;
  std::vector<char> saves_;
};

}  // namespace helios::model
