#pragma once
// Ping, fan-out and a child that fails, in one system: the workload of the seeded and the teardown tests.

#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "runtime/channel.hpp"
#include "runtime/sleep.hpp"
#include "test/support/test_runtime.hpp"

namespace helios::test {

/// Written from the strands of all actors, so atomic: on the real executor these are different threads.
struct Tally {
  std::atomic<int> asked{0}, answered{0}, values{0}, alive{0};
};

struct Number {
  int value = 0;
};
struct Work {
  int value = 0;
  runtime::Reply<Number> reply;
};
struct Round {
  int width = 0;
  runtime::Reply<Number> reply;
};

/// Answers, now and then late, and throws on every seventh message.
class Worker final : public runtime::Actor<Worker, Work> {
 public:
  explicit Worker(std::shared_ptr<Tally> tally) : tally_(std::move(tally)) { ++tally_->alive; }
  ~Worker() { --tally_->alive; }
  runtime::Task<> on(Work msg) {
    if (++seen_ % 7 == 0) throw std::runtime_error("every seventh");
    if (seen_ % 3 == 0)
      (void)co_await runtime::sleep_for(executor(), std::chrono::milliseconds(seen_), scope().token());
    msg.reply.send(Number{msg.value * 2});
  }

 private:
  std::shared_ptr<Tally> tally_;
  int seen_ = 0;
};

/// Asks all workers at once through its scope, passes their answers through a channel, and sums them.
class Hub final : public runtime::Actor<Hub, Round> {
 public:
  Hub(std::vector<runtime::Address<Work>> workers, std::shared_ptr<Tally> tally)
      : workers_(std::move(workers)),
        tally_(std::move(tally)),
        answers_(std::make_shared<runtime::Channel<int>>(2)) {
    ++tally_->alive;
  }
  ~Hub() { --tally_->alive; }
  runtime::Task<> on(Round msg) {
    int spawned = 0;
    for (int i = 0; i < msg.width; ++i) {
      const auto& worker = workers_[static_cast<std::size_t>(i) % workers_.size()];
      if (scope().spawn(ask_one(worker, i, answers_, tally_))) ++spawned;
    }
    Number sum;
    for (int i = 0; i < spawned; ++i) {
      const std::optional<int> value = co_await answers_->pop(runtime::kNever, scope().token());
      if (!value) co_return;  // stopping: the reply answers by being dropped
      sum.value += *value;
    }
    msg.reply.send(sum);
  }

 private:
  static runtime::Task<> ask_one(runtime::Address<Work> worker, int value,
                                 std::shared_ptr<runtime::Channel<int>> out, std::shared_ptr<Tally> tally) {
    ++tally->asked;
    const Result<Number> got = co_await worker.ask(Work{value, {}}, std::chrono::milliseconds(20));
    ++tally->answered;
    if (got) ++tally->values;
    (void)co_await out->push(got ? got->value : 0);
  }
  std::vector<runtime::Address<Work>> workers_;
  std::shared_ptr<Tally> tally_;
  std::shared_ptr<runtime::Channel<int>> answers_;
};

/// The workload in one system: three workers, of which one waits when full, under a hub.
inline runtime::ActorRef<Hub> build_workload(runtime::ActorSystem& system,
                                             const std::shared_ptr<Tally>& tally) {
  std::vector<runtime::Address<Work>> workers;
  for (int i = 0; i < 3; ++i) {
    runtime::ActorOptions options;
    options.name = "worker" + std::to_string(i);
    options.mailbox_capacity = 2;
    options.when_full = i == 0 ? runtime::WhenFull::wait : runtime::WhenFull::refuse;
    options.supervision = runtime::Supervision::restarting();
    options.supervision.restarts_max = 1000;
    options.supervision.backoff_max = std::chrono::milliseconds(40);
    workers.push_back(system.spawn<Worker>(options, tally));
  }
  return system.spawn<Hub>({.name = "hub"}, workers, tally);
}

}  // namespace helios::test
