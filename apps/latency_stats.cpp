#include "apps/latency_stats.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace helios::apps {

namespace {

double percentile(const std::vector<double>& sorted, double fraction) {
  const double rank = fraction * static_cast<double>(sorted.size() - 1);
  const std::size_t low = static_cast<std::size_t>(rank);
  const std::size_t high = std::min(low + 1, sorted.size() - 1);
  return sorted[low] + (sorted[high] - sorted[low]) * (rank - static_cast<double>(low));
}

}  // namespace

LatencySummary summarize(std::vector<double> samples) {
  if (samples.empty()) return {};
  std::sort(samples.begin(), samples.end());
  LatencySummary summary;
  summary.count = samples.size();
  summary.mean = std::accumulate(samples.begin(), samples.end(), 0.0) / static_cast<double>(samples.size());
  summary.median = percentile(samples, 0.5);
  summary.p90 = percentile(samples, 0.9);
  summary.p99 = percentile(samples, 0.99);
  return summary;
}

}  // namespace helios::apps
