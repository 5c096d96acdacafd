#pragma once
// One steady clock inside the program; milliseconds appear only at the edges. Under simulation time comes
// from Executor::now(), so code asks its executor and never Clock::now().

#include <chrono>

namespace helios::runtime {

using Clock = std::chrono::steady_clock;
using TimePoint = Clock::time_point;
using Duration = Clock::duration;

/// "No deadline": waits that take a deadline treat it as never.
inline constexpr TimePoint kNever = TimePoint::max();

/// start + wait without overflow: a wait too long to represent is kNever.
constexpr TimePoint saturating_add(TimePoint start, Duration wait) {
  if (wait > Duration::zero() && start > kNever - wait) return kNever;
  return start + wait;
}

}  // namespace helios::runtime
