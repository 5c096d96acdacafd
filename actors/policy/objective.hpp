#pragma once
// What a request or a server wants: `name{, metric(>=|<=)number}`, such as "throughput, agreement>=0.98".

#include <string>
#include <string_view>
#include <vector>

#include "runtime/result.hpp"

namespace helios::actors::policy {

enum class Goal : unsigned char { throughput, response_time, accuracy, energy };
enum class Metric : unsigned char { agreement, ttft_ms, tpot_ms, perplexity, j_per_token };

struct Bound {
  Metric metric = Metric::agreement;
  bool at_least = true;  // >=, else <=
  double value = 0;
};

struct Objective {
  Goal goal = Goal::throughput;
  std::vector<Bound> bounds;  // all hold; at most one a metric
};

/// "" is throughput without bounds. Errors: bad_request (an unknown word, a bound in the wrong direction, a
/// number outside the metric's range, a metric twice: says which and what there is).
Result<Objective> parse_objective(std::string_view text);
/// The form that parse_objective reads.
std::string to_string(const Objective& objective);
std::string_view to_string(Goal goal) noexcept;
std::string_view to_string(Metric metric) noexcept;

}  // namespace helios::actors::policy
