#include "actors/policy/step_composer.hpp"

#include <algorithm>

namespace helios::actors::policy {

namespace {

/// Share of the stretch that a plan uses: the rest is for what the step-time model does not know yet.
constexpr double kMargin = 0.8;

/// Everything one trial plan needs: total work and the decode rows' share of it.
struct Trial {
  StepWork all;
  StepWork decode;
  int rows = 0;
};

Trial build(const std::vector<StepCandidate>& candidates, const std::vector<StepShare>& shares, int layers) {
  Trial trial{StepWork(layers), StepWork(layers), 0};
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const StepCandidate& c = candidates[i];
    const StepShare& s = shares[i];
    trial.all.add(c.depth, c.target, c.caught_up, s.catch_up);
    trial.rows += s.catch_up + s.rows;
    if (s.rows == 0) continue;
    const int depth = s.deepen ? c.target : c.depth;
    trial.all.add(0, depth, c.position, s.rows);
    const bool yields = c.decoding || s.rows == c.pending;
    if (yields) trial.all.add_outputs(1);
    if (c.decoding) {
      trial.decode.add(0, depth, c.position, s.rows);
      trial.decode.add_outputs(1);
    }
  }
  return trial;
}

bool fits(const Trial& trial, const StepLimits& limits, const StepTimeModel& model) {
  if (trial.rows > limits.rows_max) return false;
  if (trial.decode.layer_rows() == 0) return true;
  const double allowed = 1.0 + (limits.stretch_max - 1.0) * kMargin;
  if (!model.trained()) {
    const auto cost = [](const StepWork& work) { return work.layer_rows() + work.touched_layers(); };
    return cost(trial.all) <= allowed * cost(trial.decode);
  }
  return model.predict_seconds(trial.all) <= allowed * model.predict_seconds(trial.decode);
}

/// The largest n in 1..most for which `allows(n)`, assuming it is monotone; 0 when none.
template <class Predicate>
int largest(int most, Predicate allows) {
  int low = 0, high = most;
  while (low < high) {
    const int middle = low + (high - low + 1) / 2;
    if (allows(middle)) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

}  // namespace

ComposedStep compose_step(const std::vector<StepCandidate>& candidates, const StepLimits& limits,
                          const StepTimeModel& model) {
  ComposedStep step(limits.layers);
  std::vector<StepShare>& shares = step.shares;
  shares.resize(candidates.size());

  int rows = 0;
  for (std::size_t i = 0; i < candidates.size() && rows < limits.rows_max; ++i) {
    if (!candidates[i].decoding) continue;
    shares[i].rows = 1;
    ++rows;
  }
  auto accepted = [&] { return fits(build(candidates, shares, limits.layers), limits, model); };

  bool wanted = false, granted = false;
  auto force = [&](StepShare& share, int StepShare::* count) {
    if (!limits.force_chunk || granted || rows >= limits.rows_max) return;
    share.*count = 1;
    granted = true;
  };

  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const StepCandidate& c = candidates[i];
    if (c.target <= c.depth) continue;
    StepShare& share = shares[i];
    const int left = c.position - c.caught_up;
    // All at once, so that its own row moves in this step too: the usual end of a catch-up.
    share.catch_up = left;
    share.deepen = true;
    if (accepted()) {
      granted = granted || left > 0;
      continue;
    }
    wanted = true;
    share.deepen = false;
    share.catch_up = 0;
    share.catch_up = largest(left - 1, [&](int n) {
      share.catch_up = n;
      return accepted();
    });
    if (share.catch_up > 0) {
      granted = true;
    } else if (left > 0) {
      if (left == 1) {
        // One row alone: without its end the sequence would stay one row behind for ever.
        if (limits.force_chunk && !granted && rows < limits.rows_max) {
          share.catch_up = 1;
          share.deepen = true;
          granted = true;
        }
      } else {
        force(share, &StepShare::catch_up);
      }
    }
  }
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const StepCandidate& c = candidates[i];
    if (c.decoding || c.pending <= 0) continue;
    StepShare& share = shares[i];
    wanted = true;
    share.rows = largest(c.pending, [&](int n) {
      share.rows = n;
      return accepted();
    });
    if (share.rows > 0) {
      granted = true;
    } else {
      force(share, &StepShare::rows);
    }
    if (share.rows < c.pending) break;  // first come, first served: the budget is spent
  }

  const Trial trial = build(candidates, shares, limits.layers);
  step.work = trial.all;
  step.decode_seconds = model.predict_seconds(trial.decode);
  step.seconds = model.predict_seconds(trial.all);
  step.starved = wanted && !granted;
  return step;
}

}  // namespace helios::actors::policy
