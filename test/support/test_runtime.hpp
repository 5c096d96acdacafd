#pragma once
// One thread, virtual time, the same order every run: what tests of actors stand on.

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/actor_system.hpp"
#include "runtime/async_scope.hpp"
#include "runtime/sim_executor.hpp"
#include "runtime/strand.hpp"
#include "runtime/sync_wait.hpp"

namespace helios::test {

/// The answer to an ask, once it is there.
template <class T>
class Pending {
 public:
  struct State {
    std::optional<Result<T>> result;
    int answers = 0;
  };
  bool ready() const { return state_->result.has_value(); }
  int answers() const { return state_->answers; }
  /// Throws when it is an error or not there.
  decltype(auto) value() const { return state_->result.value().value(); }
  Error error() const { return state_->result.value().error(); }
  bool ok() const { return ready() && state_->result->has_value(); }
  bool failed_with(Errc code) const { return ready() && !ok() && error().code == code; }
  const std::shared_ptr<State>& state() const { return state_; }

 private:
  std::shared_ptr<State> state_ = std::make_shared<State>();
};

class TestRuntime {
 public:
  explicit TestRuntime(std::uint64_t seed = 1)
      : executor_(seed),
        system_(executor_, &metrics_, nullptr,
                [this](const runtime::ActorFailure& failure) { failures_.push_back(failure); }),
        strand_(executor_),
        scope_(strand_) {}

  runtime::SimExecutor& executor() { return executor_; }
  runtime::ActorSystem& system() { return system_; }
  runtime::Registry& metrics() { return metrics_; }
  runtime::AsyncScope& scope() { return scope_; }
  const std::vector<runtime::ActorFailure>& failures() const { return failures_; }
  runtime::TimePoint now() const { return executor_.now(); }

  template <class Derived, class... Args>
  runtime::ActorRef<Derived> spawn(runtime::ActorOptions options, Args&&... args) {
    return system_.spawn<Derived>(std::move(options), std::forward<Args>(args)...);
  }

  /// Starts the ask on the test's own strand; run the executor to get the answer.
  template <class Target, class M>
  auto ask(const Target& target, M message, runtime::Duration timeout = std::chrono::seconds(10)) {
    using T = typename decltype(M::reply)::value_type;
    Pending<T> pending;
    runtime::Address<M> address = target;
    (void)scope_.spawn(store<T>(address.ask(std::move(message), timeout), pending.state()));
    return pending;
  }

  std::uint64_t run_until_idle() { return executor_.run_until_idle(); }
  /// Runs `task` to its end and gives its result.
  template <class T>
  T run(runtime::Task<T> task) {
    return runtime::sync_wait(executor_, std::move(task));
  }

 private:
  template <class T>
  static runtime::Task<> store(runtime::Task<Result<T>> task,
                               std::shared_ptr<typename Pending<T>::State> out) {
    Result<T> result = co_await task;
    out->result.emplace(std::move(result));
    ++out->answers;
  }

  runtime::Registry metrics_;
  std::vector<runtime::ActorFailure> failures_;
  runtime::SimExecutor executor_;
  runtime::ActorSystem system_;
  runtime::Strand strand_;
  runtime::AsyncScope scope_;
};

}  // namespace helios::test
