#include "actors/policy/objective.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>

namespace helios::actors::policy {

namespace {

constexpr std::array<std::string_view, 4> kGoals{"throughput", "response_time", "accuracy", "energy"};

struct MetricRule {
  std::string_view name;
  bool at_least;
  double low, high;  // of the bound's number
};
constexpr std::array<MetricRule, 5> kMetrics{{{"agreement", true, 0.0, 1.0},
                                              {"ttft_ms", false, 0.0, 1e9},
                                              {"tpot_ms", false, 0.0, 1e9},
                                              {"perplexity", false, 1.0, 1e9},
                                              {"j_per_token", false, 0.0, 1e9}}};

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlank = " \t";
  const std::size_t first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

const MetricRule& rule_of(Metric metric) noexcept {
  return kMetrics[static_cast<std::size_t>(metric)];
}

std::string bound_words() {
  std::string words;
  for (const MetricRule& rule : kMetrics)
    words += fmt::format("{}{}{}NUMBER", words.empty() ? "" : ", ", rule.name, rule.at_least ? ">=" : "<=");
  return words;
}

Result<Bound> parse_bound(std::string_view text) {
  const std::size_t sign = text.find_first_of("<>");
  const auto rule = sign == std::string_view::npos || sign + 1 >= text.size() || text[sign + 1] != '='
                        ? kMetrics.end()
                        : std::find_if(kMetrics.begin(), kMetrics.end(), [&](const MetricRule& known) {
                            return known.name == trimmed(text.substr(0, sign));
                          });
  if (rule == kMetrics.end()) {
    return fail(Errc::bad_request,
                fmt::format("objective: '{}' is not a bound; bounds are {}", text.substr(0, 64), bound_words()));
  }
  if ((text[sign] == '>') != rule->at_least) {
    return fail(Errc::bad_request, fmt::format("objective: {} is bounded by {}, not by {}", rule->name,
                                               rule->at_least ? ">=" : "<=", text.substr(sign, 2)));
  }
  const std::string_view number = trimmed(text.substr(sign + 2));
  double value = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
  if (error != std::errc{} || end != number.data() + number.size() || !std::isfinite(value) ||
      value < rule->low || value > rule->high) {
    return fail(Errc::bad_request,
                fmt::format("objective: {} needs a number from {:g} to {:g}, not '{}'", rule->name, rule->low,
                            rule->high, number.substr(0, 32)));
  }
  return Bound{static_cast<Metric>(rule - kMetrics.begin()), rule->at_least, value};
}

}  // namespace

std::string_view to_string(Goal goal) noexcept {
  return kGoals[static_cast<std::size_t>(goal)];
}

std::string_view to_string(Metric metric) noexcept {
  return rule_of(metric).name;
}

Result<Objective> parse_objective(std::string_view text) {
  Objective objective;
  std::size_t at = 0;
  for (bool first = true; at <= text.size(); first = false) {
    const std::size_t comma = std::min(text.find(',', at), text.size());
    const std::string_view part = trimmed(text.substr(at, comma - at));
    at = comma + 1;
    if (first) {
      if (part.empty() && at > text.size()) break;
      const auto goal = std::find(kGoals.begin(), kGoals.end(), part);
      if (goal == kGoals.end()) {
        return fail(Errc::bad_request, fmt::format("objective: '{}' is not one of {}", part.substr(0, 64),
                                                   fmt::join(kGoals, ", ")));
      }
      objective.goal = static_cast<Goal>(goal - kGoals.begin());
      continue;
    }
    Result<Bound> bound = parse_bound(part);
    if (!bound) return bound.error();
    for (const Bound& other : objective.bounds) {
      if (other.metric == bound->metric)
        return fail(Errc::bad_request, fmt::format("objective: {} is bounded twice", to_string(other.metric)));
    }
    objective.bounds.push_back(*bound);
  }
  return objective;
}

std::string to_string(const Objective& objective) {
  std::string text(to_string(objective.goal));
  for (const Bound& bound : objective.bounds)
    text += fmt::format(",{}{}{}", to_string(bound.metric), bound.at_least ? ">=" : "<=", bound.value);
  return text;
}

}  // namespace helios::actors::policy
