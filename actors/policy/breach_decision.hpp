#pragma once
// What to do when the breach counter trips: load more layers of the model that serves, or switch to another.

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "actors/policy/choice.hpp"

namespace helios::actors::policy {

struct BreachRules {
  ChoiceRules choice;
  bool all_layers = false;  // helios-paper: "load more" means all of them
  bool may_load = true, may_switch = true;
  double load_hidden = 0;  // share of a load's time that generation goes on beside it, 0..1
};

/// What the decision is about to last for.
struct BreachState {
  std::size_t current = 0;          // index of the row that serves now
  double tokens_expected = 0;       // until the next reassessment
  double prefill_s_per_switch = 0;  // running sequences that would be prefilled again
  std::vector<bool> left;  // by model: left by a breach since the last reassessment; not switched back to
};

enum class Remedy : unsigned char { stay, load_more, switch_model };
std::string_view to_string(Remedy remedy) noexcept;

struct Cost {
  std::size_t row = 0;  // where it leads to
  double seconds = 0;   // load time not hidden + re-prefill + tokens_expected at that row's speed
};

struct BreachDecision {
  Remedy remedy = Remedy::stay;
  std::size_t row = 0;  // of the table, to serve from now on
  std::optional<Cost> load_more, switch_model;  // both are logged; absent: not possible
};

/// The cheaper of (a) the chosen model's next exit without objection (L if none; always L with all_layers) and
/// (b) the cheapest row of a model not yet left that may serve the objective. A row without a known speed is
/// taken at the current row's, scaled by bytes. Ties load. Neither possible: stay. Each decision deepens or
/// leaves a model for good, so between two reassessments there are at most as many as there are rows.
BreachDecision decide_breach(std::span<const HistoryRow> rows, const Objective& objective,
                             const BreachRules& rules, const BreachState& state);

}  // namespace helios::actors::policy
