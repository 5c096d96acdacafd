#pragma once
// Thresholds with a guarantee: Learn then Test, Angelopoulos et al. 2021 (arXiv 2110.01052), as CALM uses it
// (arXiv 2207.07061).

#include <optional>
#include <span>
#include <vector>

namespace helios::actors::policy {

/// One token of a calibration answer, judged at an exit on full depth's own prefix.
struct JudgedToken {
  float confidence = 0.0F;  // [0, 1]
  bool agrees = false;      // the exit's choice is full depth's
};

/// The p-value of "the mean of n losses in [0, 1] is above `delta`", given their mean (Hoeffding-Bentkus).
/// Needs n >= 1 and 0 < delta < 1. Small p: the risk is below delta.
double hoeffding_bentkus_p(double mean_loss, int n, double delta);

/// The smallest delta that n losses of zero certify at `epsilon`.
double smallest_certifiable(int n, double epsilon);

/// What leaves at a threshold.
struct Leaving {
  double share = 0.0;      // of all tokens; 0 without any
  double agreement = 1.0;  // of those that leave; 1 without any
};
Leaving leaving_at(std::span<const std::vector<JudgedToken>> prompts, double threshold);

struct CertifiedThreshold {
  std::optional<double> threshold;  // absent: no threshold passes, never leave here
  double share = 0.0;               // Leaving at it
  double agreement = 0.0;
};

/// The lowest threshold l of the grid 1, 1 - step, … 0 for which, with probability >= 1 - epsilon over the
/// calibration prompts, at most `delta` of a new prompt's tokens (expected, prompts drawn as these were)
/// leave with confidence >= l and disagree. Fixed-sequence testing from 1 downwards: it stops at the first
/// that fails and keeps the last that passed. A prompt is one loss, its wrong exits over its tokens, since
/// tokens of one answer are not independent. Prompts without tokens are left out.
CertifiedThreshold learn_then_test(std::span<const std::vector<JudgedToken>> prompts, double delta,
                                   double epsilon, double step = 0.01);

}  // namespace helios::actors::policy
