#pragma once
// Timers as waits.

#include "runtime/cancellation.hpp"
#include "runtime/clock.hpp"
#include "runtime/executor.hpp"
#include "runtime/result.hpp"
#include "runtime/task.hpp"

namespace helios::runtime {

/// Resumes the caller on its own executor at `when` on `executor`'s clock. Errors: cancelled, at once.
Task<Result<void>> sleep_until(Executor& executor, TimePoint when, CancelToken cancel = {});
Task<Result<void>> sleep_for(Executor& executor, Duration duration, CancelToken cancel = {});
/// Lets other jobs of the caller's executor run first.
Task<> yield_now();

}  // namespace helios::runtime
