#include "actors/policy/performance_history.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace helios::actors::policy {

std::string_view to_string(Source source) noexcept {
  constexpr std::array<std::string_view, 5> kNames{"assumed", "repository", "calibration", "profiled", "live"};
  return kNames[static_cast<std::size_t>(source)];
}

Figure share_figure(std::int64_t hits, std::int64_t samples, Source source) {
  Figure figure{.value = 0, .low = 0, .high = 1, .samples = samples, .source = source, .age_s = 0};
  if (samples <= 0) return figure;
  constexpr double kZ = 1.959964;  // 95 %
  const auto n = static_cast<double>(samples);
  const double share = static_cast<double>(hits) / n;
  const double middle = share + kZ * kZ / (2 * n);
  const double spread = kZ * std::sqrt(share * (1 - share) / n + kZ * kZ / (4 * n * n));
  figure.value = share;
  figure.low = std::clamp((middle - spread) / (1 + kZ * kZ / n), 0.0, share);
  figure.high = std::clamp((middle + spread) / (1 + kZ * kZ / n), share, 1.0);
  return figure;
}

}  // namespace helios::actors::policy
