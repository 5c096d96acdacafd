#include "actors/policy/breach_decision.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace helios::actors::policy {

namespace {

double tokens_per_s(std::span<const HistoryRow> rows, std::size_t row, std::size_t current) {
  if (rows[row].tokens_per_s) return rows[row].tokens_per_s->value;
  const double known = rows[current].tokens_per_s ? rows[current].tokens_per_s->value : 1.0;
  const auto bytes = static_cast<double>(std::max<std::size_t>(rows[row].device_bytes, 1));
  return known * static_cast<double>(std::max<std::size_t>(rows[current].device_bytes, 1)) / bytes;
}

Cost cost_of(std::span<const HistoryRow> rows, std::size_t row, const BreachRules& rules,
             const BreachState& state, double prefill_s) {
  const double load = rows[row].load_s * (1.0 - std::clamp(rules.load_hidden, 0.0, 1.0));
  return {row, load + prefill_s + state.tokens_expected / std::max(tokens_per_s(rows, row, state.current), 1e-9)};
}

/// The shallowest deeper row of the model that serves now, without objection; L whatever its figures.
std::optional<std::size_t> deeper_row(std::span<const HistoryRow> rows, const Objective& objective,
                                      const BreachRules& rules, std::size_t current) {
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const HistoryRow& row = rows[i];
    if (row.model != rows[current].model || row.depth <= rows[current].depth) continue;
    if (row.device_bytes > rules.choice.device_bytes) continue;
    if (!row.full() && (rules.all_layers || objection(row, objective, rules.choice))) continue;
    if (!best || row.depth < rows[*best].depth) best = i;
  }
  return best;
}

}  // namespace

std::string_view to_string(Remedy remedy) noexcept {
  constexpr std::array<std::string_view, 3> kNames{"stay", "load_more", "switch"};
  return kNames[static_cast<std::size_t>(remedy)];
}

BreachDecision decide_breach(std::span<const HistoryRow> rows, const Objective& objective,
                             const BreachRules& rules, const BreachState& state) {
  BreachDecision decision{.remedy = Remedy::stay, .row = state.current, .load_more = {}, .switch_model = {}};
  if (rules.may_load) {
    if (const auto row = deeper_row(rows, objective, rules, state.current))
      decision.load_more = cost_of(rows, *row, rules, state, 0.0);
  }
  if (rules.may_switch) {
    for (const std::size_t i : rank(rows, objective, rules.choice)) {
      const int model = rows[i].model;
      const bool left = static_cast<std::size_t>(model) < state.left.size() &&
                        state.left[static_cast<std::size_t>(model)];
      if (model == rows[state.current].model || left) continue;
      const Cost cost = cost_of(rows, i, rules, state, state.prefill_s_per_switch);
      if (!decision.switch_model || cost.seconds < decision.switch_model->seconds) decision.switch_model = cost;
    }
  }
  const auto take = [&](Remedy remedy, const Cost& cost) {
    decision.remedy = remedy;
    decision.row = cost.row;
  };
  const bool load = decision.load_more &&
                    (!decision.switch_model || decision.load_more->seconds <= decision.switch_model->seconds);
  if (load) {
    take(Remedy::load_more, *decision.load_more);
  } else if (decision.switch_model) {
    take(Remedy::switch_model, *decision.switch_model);
  }
  return decision;
}

}  // namespace helios::actors::policy
