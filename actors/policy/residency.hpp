#pragma once
// How long a decision stands before the next one.

#include <algorithm>
#include <cstdint>

#include "runtime/clock.hpp"

namespace helios::actors::policy {

/// At most one decision per max(512 tokens, 10 x the last load's time): both must have passed.
struct Residency {
  std::uint64_t tokens_min = 512;
  double load_times_min = 10.0;
};

constexpr bool may_decide(const Residency& rule, std::uint64_t tokens_since, runtime::Duration time_since,
                          runtime::Duration last_load_time) {
  using Seconds = std::chrono::duration<double>;
  return tokens_since >= rule.tokens_min &&
         Seconds(time_since).count() >= rule.load_times_min * Seconds(last_load_time).count();
}

}  // namespace helios::actors::policy
