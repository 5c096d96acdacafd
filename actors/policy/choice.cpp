#include "actors/policy/choice.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace helios::actors::policy {

namespace {

constexpr double kAnswerTokens = 32;  // that a reader waits for, when response time is the goal

/// The side of the interval that a bound is held against: a promise of agreement needs its lower end.
std::optional<double> bounded_value(const HistoryRow& row, Metric metric) {
  const auto value = [](const std::optional<Figure>& figure) -> std::optional<double> {
    if (!figure) return std::nullopt;
    return figure->value;
  };
  switch (metric) {
    case Metric::agreement:
      if (row.full()) return 1.0;
      if (!row.agreement) return std::nullopt;
      return row.agreement->low;
    case Metric::ttft_ms:
      return value(row.ttft_ms);
    case Metric::tpot_ms:
      return value(row.tpot_ms);
    case Metric::perplexity:
      return value(row.perplexity);
    case Metric::j_per_token:
      return value(row.j_per_token);
  }
  return std::nullopt;
}

bool meets(const Bound& bound, double value) {
  return bound.at_least ? value >= bound.value : value <= bound.value;
}

std::optional<double> task_score(const HistoryRow& row) {
  if (!row.accuracy) return std::nullopt;
  if (row.full()) return row.accuracy->value;
  if (!row.agreement) return std::nullopt;
  return row.accuracy->value * row.agreement->value;
}

std::optional<double> score_of(const HistoryRow& row, Goal goal, bool by_tasks) {
  switch (goal) {
    case Goal::throughput:
      if (row.tokens_per_s) return row.tokens_per_s->value;
      break;
    case Goal::response_time:
      if (row.ttft_ms && row.tpot_ms) return -row.ttft_ms->value - (kAnswerTokens - 1) * row.tpot_ms->value;
      break;
    case Goal::accuracy:
      if (by_tasks) return task_score(row);
      if (row.perplexity) return -std::log(row.perplexity->value);
      break;
    case Goal::energy:
      if (row.j_per_token) return -row.j_per_token->value;
      break;
  }
  return std::nullopt;
}

/// Whether any row but for this bound serves the objective, and how near the best of them comes to it.
std::string nearest(std::span<const HistoryRow> rows, const Bound& bound, std::span<const std::string> names) {
  std::optional<double> best;
  const HistoryRow* of = nullptr;
  for (const HistoryRow& row : rows) {
    const std::optional<double> value = bounded_value(row, bound.metric);
    if (!value || (best && (bound.at_least ? *value <= *best : *value >= *best))) continue;
    best = value;
    of = &row;
  }
  if (!best) return fmt::format("{} is not known for any model", to_string(bound.metric));
  return fmt::format("the nearest {} is {:.4g} ({} at {}/{})", to_string(bound.metric), *best,
                     names[static_cast<std::size_t>(of->model)], of->depth, of->layers);
}

}  // namespace

std::optional<std::string> objection(const HistoryRow& row, const Objective& objective,
                                     const ChoiceRules& rules) {
  if (row.device_bytes > rules.device_bytes)
    return fmt::format("needs {} bytes of {}", row.device_bytes, rules.device_bytes);
  if (!row.full() && rules.min_agreement > 0) {
    if (!row.agreement) return "its agreement with full depth is not known";
    if (row.agreement->low < rules.min_agreement)
      return fmt::format("agreement is only sure to be {:.3f}, the floor is {:.3f}", row.agreement->low,
                         rules.min_agreement);
  }
  if (!row.full() && row.breach_rate && row.breach_rate->value > rules.breach_max)
    return fmt::format("{:.0f} % of its tokens would be breaches, {:.0f} % are allowed",
                       100 * row.breach_rate->value, 100 * rules.breach_max);
  for (const Bound& bound : objective.bounds) {
    const std::optional<double> value = bounded_value(row, bound.metric);
    if (!value) return fmt::format("its {} is not known", to_string(bound.metric));
    if (!meets(bound, *value))
      return fmt::format("{} is {:.4g}, asked for {} {:g}", to_string(bound.metric), *value,
                         bound.at_least ? ">=" : "<=", bound.value);
  }
  return std::nullopt;
}

std::vector<std::optional<double>> scores(std::span<const HistoryRow> rows, Goal goal) {
  const bool by_tasks = std::all_of(rows.begin(), rows.end(),
                                    [](const HistoryRow& row) { return task_score(row).has_value(); });
  std::vector<std::optional<double>> result;
  for (const HistoryRow& row : rows) result.push_back(score_of(row, goal, by_tasks));
  return result;
}

std::vector<std::size_t> rank(std::span<const HistoryRow> rows, const Objective& objective,
                              const ChoiceRules& rules) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (!objection(rows[i], objective, rules)) order.push_back(i);
  }
  std::vector<HistoryRow> allowed;
  for (const std::size_t i : order) allowed.push_back(rows[i]);
  const std::vector<std::optional<double>> by_allowed = scores(allowed, objective.goal);
  std::vector<std::optional<double>> score(rows.size());
  for (std::size_t i = 0; i < order.size(); ++i) score[order[i]] = by_allowed[i];
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    if (score[a].has_value() != score[b].has_value()) return score[a].has_value();
    if (!score[a] && rows[a].depth != rows[b].depth) return rows[a].depth > rows[b].depth;
    if (score[a] && *score[a] != *score[b]) return *score[a] > *score[b];
    if (rows[a].device_bytes != rows[b].device_bytes) return rows[a].device_bytes < rows[b].device_bytes;
    return a < b;
  });
  return order;
}

Result<std::size_t> choose(std::span<const HistoryRow> rows, const Objective& objective,
                           const ChoiceRules& rules, std::span<const std::string> names) {
  const std::vector<std::size_t> order = rank(rows, objective, rules);
  if (!order.empty()) return order.front();
  std::string reasons;
  for (const Bound& bound : objective.bounds)
    reasons += fmt::format("{}{}", reasons.empty() ? "" : "; ", nearest(rows, bound, names));
  if (reasons.empty() && !rows.empty()) {
    reasons = fmt::format("{} at {}/{}: {}", names[static_cast<std::size_t>(rows[0].model)], rows[0].depth,
                          rows[0].layers, *objection(rows[0], objective, rules));
  }
  if (reasons.empty()) reasons = "there is no candidate";
  return fail(Errc::no_model,
              fmt::format("objective '{}' cannot be met: {}", to_string(objective), reasons));
}

}  // namespace helios::actors::policy
