#pragma once
// Which (model, depth) serves an objective. Pure: the server, the simulation and `helios replay` call the same
// functions.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "actors/policy/objective.hpp"
#include "actors/policy/performance_history.hpp"
#include "runtime/result.hpp"

namespace helios::actors::policy {

struct ChoiceRules {
  double min_agreement = 0.90;  // floor of agreement's lower bound; 0: no floor (helios-paper)
  double breach_max = 0.5;      // largest predicted breach rate
  std::size_t device_bytes = SIZE_MAX;  // a row must fit
};

/// Why a row may not serve the objective, in one clause; nothing: it may. Below L the agreement must be known
/// and its lower bound reach the floor and the objective's own bound; a known breach rate must be within its
/// bound. Other bounds take the figure's value; a figure that is not known meets no bound.
std::optional<std::string> objection(const HistoryRow& row, const Objective& objective,
                                     const ChoiceRules& rules);

/// How good each row is for the goal, larger is better; nothing where it cannot be told. throughput: tokens/s.
/// response_time: minus the time of a first token and 31 more. energy: minus J per token. accuracy: task
/// accuracy times agreement where all rows have both, else minus the log of perplexity.
std::vector<std::optional<double>> scores(std::span<const HistoryRow> rows, Goal goal);

/// Indices of the rows that may serve the objective, best first; ties go to fewer device bytes. Rows that
/// cannot be told apart (no score) come last, larger depth first.
std::vector<std::size_t> rank(std::span<const HistoryRow> rows, const Objective& objective,
                              const ChoiceRules& rules);

/// The best of rank(). Errors: no_model when no row may serve it, with each bound's nearest feasible figure.
/// `names`: of the models.
Result<std::size_t> choose(std::span<const HistoryRow> rows, const Objective& objective,
                           const ChoiceRules& rules, std::span<const std::string> names);

}  // namespace helios::actors::policy
