#pragma once
// What goes into the next step. Pure: same input, same step.

#include <vector>

#include "actors/policy/step_time_model.hpp"

namespace helios::actors::policy {

/// One sequence that could take part. Exactly the work it could do next; positions count computed rows.
struct StepCandidate {
  int depth = 0;      // layers its rows run now
  int target = 0;     // > depth: it wants to deepen and layers [depth, target) are resident
  int caught_up = 0;  // positions whose layers [depth, target) are filled
  int position = 0;   // first position without KV; rows from here come next
  int pending =
      0;  // rows from `position` on with known ids: 1 when decoding, the rest of the prompt in prefill
  bool decoding = false;  // its one pending row yields a token
};

/// The share of one candidate, same index.
struct StepShare {
  int catch_up = 0;     // rows through layers [depth, target), from caught_up on
  bool deepen = false;  // catch-up ends in this step, so its own rows run to `target` already
  int rows = 0;         // decode or prefill rows
};

struct StepLimits {
  int layers = 0;
  int rows_max = 0;          // all kinds
  double stretch_max = 2.0;  // predicted step over predicted decode step
  bool force_chunk =
      false;  // chunks starved for long: one row of the first one goes in although it does not fit
};

struct ComposedStep {
  std::vector<StepShare> shares;
  StepWork work;
  double decode_seconds = 0;  // predicted, decode rows alone
  double seconds = 0;         // predicted, all
  bool starved = false;       // a chunk wanted in and none got a row

  explicit ComposedStep(int layers) : work(layers) {}
};

/// Order of candidates = age, oldest first; decode rows always go in (rows_max permitting), then catch-up
/// chunks, then prefill chunks, each the largest that keeps predicted(step) <= stretch_max x predicted(decode
/// rows at the depths they have in this step). Without decode rows only rows_max binds. While the model is
/// untrained, chunks are held to (stretch_max - 1) x the decode rows' own layer-rows, which keeps the bound
/// for any cost that grows with rows.
ComposedStep compose_step(const std::vector<StepCandidate>& candidates, const StepLimits& limits,
                          const StepTimeModel& model);

}  // namespace helios::actors::policy
