#pragma once
// Predicts how long a step takes from what is in it, and learns from what it took.

#include <array>
#include <cstddef>
#include <vector>

namespace helios::actors::policy {

/// What a step does, in units that add up over rows. A row that runs layers [first, last) counts last - first
/// layer-rows, and its attention reads (position + 1) keys at each of them.
class StepWork {
 public:
  explicit StepWork(int layers) : touched_(static_cast<std::size_t>(layers), false) {}

  /// `rows` rows of one sequence at positions position .. position + rows - 1 through layers [first, last).
  void add(int first_layer, int last_layer, int position, int rows);
  /// Rows that go through an exit head.
  void add_outputs(int count) { outputs_ += count; }

  double touched_layers() const;  // layers whose weights are read
  double layer_rows() const { return layer_rows_; }
  double layer_context() const { return layer_context_; }
  double outputs() const { return outputs_; }
  double layers() const { return static_cast<double>(touched_.size()); }

 private:
  std::vector<bool> touched_;
  double layer_rows_ = 0;
  double layer_context_ = 0;
  double outputs_ = 0;
};

/// t = a + b * rows + c * context, where a is split into a constant and the weights of touched layers, and b
/// into layer-rows and head rows. Least squares with forgetting; coefficients are never negative, so more
/// work is never predicted to be faster.
class StepTimeModel {
 public:
  /// One step took `seconds`.
  void observe(const StepWork& work, double seconds);
  double predict_seconds(const StepWork& work) const;
  /// Enough steps were seen to trust predictions.
  bool trained() const { return observations_ >= kObservationsMin; }
  std::size_t observations() const { return observations_; }

 private:
  static constexpr std::size_t kTerms = 5;  // touched layers, layer-rows, layer-context, outputs, constant
  static constexpr std::size_t kObservationsMin = 4;
  static constexpr double kForget = 0.99;
  using Terms = std::array<double, kTerms>;
  static Terms terms_of(const StepWork& work);
  void solve();

  std::array<Terms, kTerms> normal_{};  // sum of x x^T
  Terms target_{};                      // sum of x y
  Terms coefficients_{};
  std::size_t observations_ = 0;
};

}  // namespace helios::actors::policy
