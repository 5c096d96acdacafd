#include "actors/policy/step_time_model.hpp"

#include <algorithm>

namespace helios::actors::policy {

void StepWork::add(int first_layer, int last_layer, int position, int rows) {
  if (rows <= 0 || last_layer <= first_layer) return;
  const auto layer_count = static_cast<double>(last_layer - first_layer);
  const auto n = static_cast<double>(rows);
  for (int layer = first_layer; layer < last_layer; ++layer) touched_[static_cast<std::size_t>(layer)] = true;
  layer_rows_ += layer_count * n;
  layer_context_ += layer_count * (n * position + n * (n + 1) / 2);
}

double StepWork::touched_layers() const {
  return static_cast<double>(std::count(touched_.begin(), touched_.end(), true));
}

StepTimeModel::Terms StepTimeModel::terms_of(const StepWork& work) {
  // Scaled so that a usual decode step has terms near 1 and the ridge treats them alike. The order matters,
  // see solve().
  return {work.touched_layers() / work.layers(), work.layer_rows() / work.layers() / 16.0,
          work.layer_context() / work.layers() / 16384.0, work.outputs() / 16.0, 1.0};
}

void StepTimeModel::observe(const StepWork& work, double seconds) {
  const Terms x = terms_of(work);
  // Relative errors matter: a decode step must be predicted as well as a long prefill step.
  const double weight = 1.0 / std::max(seconds * seconds, 1e-12);
  for (std::size_t i = 0; i < kTerms; ++i) {
    for (std::size_t j = 0; j < kTerms; ++j) normal_[i][j] = kForget * normal_[i][j] + weight * x[i] * x[j];
    target_[i] = kForget * target_[i] + weight * x[i] * seconds;
  }
  ++observations_;
  solve();
}

void StepTimeModel::solve() {
  // Coordinate descent with a floor at zero, from zero. While all steps look alike (decode at one depth) the
  // terms cannot be told apart, and the first in the order takes their common part: the layers touched. So a
  // step that touches more of them is predicted too dear rather than too cheap.
  constexpr int kSweeps = 100;
  constexpr double kRidge = 1e-6;
  coefficients_ = {};
  for (int sweep = 0; sweep < kSweeps; ++sweep) {
    for (std::size_t i = 0; i < kTerms; ++i) {
      if (normal_[i][i] <= 0) continue;
      double rest = target_[i];
      for (std::size_t j = 0; j < kTerms; ++j) {
        if (j != i) rest -= normal_[i][j] * coefficients_[j];
      }
      coefficients_[i] = std::max(0.0, rest / (normal_[i][i] * (1.0 + kRidge)));
    }
  }
}

double StepTimeModel::predict_seconds(const StepWork& work) const {
  const Terms x = terms_of(work);
  double seconds = 0;
  for (std::size_t i = 0; i < kTerms; ++i) seconds += coefficients_[i] * x[i];
  return seconds;
}

}  // namespace helios::actors::policy
