#include "runtime/sleep.hpp"

#include <memory>

#include "runtime/one_shot.hpp"

namespace helios::runtime {

Task<Result<void>> sleep_until(Executor& executor, TimePoint when, CancelToken cancel) {
  auto state = OneShot<Result<void>>::create();
  detail::TimerGuard timer(executor.root(), when, [state] { state->set(Result<void>()); });
  CancelCallback on_cancel(cancel, [state] { state->set(fail(Errc::cancelled, "the sleep was cancelled")); });
  co_return co_await state->wait();
}

Task<Result<void>> sleep_for(Executor& executor, Duration duration, CancelToken cancel) {
  return sleep_until(executor, saturating_add(executor.now(), duration), std::move(cancel));
}

Task<> yield_now() {
  auto state = OneShot<bool>::create();
  detail::require_executor("yield_now").post([state] { state->set(true); });
  co_await state->wait();
}

}  // namespace helios::runtime
