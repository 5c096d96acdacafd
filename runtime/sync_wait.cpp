#include "runtime/sync_wait.hpp"

namespace helios::runtime::detail {

void run_blocking(Executor& executor, Task<> task) {
  std::exception_ptr failure;
  Latch done;
  Strand strand(executor);
  AsyncScope scope(strand);
  scope.on_exception([&failure](std::exception_ptr exception) { failure = std::move(exception); });
  (void)scope.spawn(std::move(task));
  scope.when_empty([&done] { done.open(); });
  if (!executor.wait(done))
    throw std::logic_error("sync_wait: the task waits for something that cannot happen");
  if (failure) std::rethrow_exception(failure);
}

}  // namespace helios::runtime::detail
