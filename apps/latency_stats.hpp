#pragma once
#include <vector>

namespace helios::apps {

/// What `vllm bench serve` prints of one latency: all in the samples' own unit.
struct LatencySummary {
  double mean = 0, median = 0, p90 = 0, p99 = 0;
  std::size_t count = 0;
};

/// Percentiles by linear interpolation between the closest ranks (numpy's default). Empty samples give zeros.
LatencySummary summarize(std::vector<double> samples);

}  // namespace helios::apps
