#pragma once
// Histogram bounds that all actors share, so that dashboards can add them up.

#include <vector>

#include "runtime/metrics.hpp"

namespace helios::actors {

/// 0.1 ms to about 100 s by factors of 2.
inline std::vector<double> seconds_bounds() {
  return runtime::exponential_bounds(1e-4, 2, 21);
}

}  // namespace helios::actors
