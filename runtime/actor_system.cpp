#include "runtime/actor_system.hpp"

#include <atomic>
#include <cstdio>
#include <mutex>
#include <vector>

#include "runtime/async_scope.hpp"
#include "runtime/latch.hpp"
#include "runtime/one_shot.hpp"
#include "runtime/strand.hpp"

namespace helios::runtime {

struct ActorSystem::Impl : std::enable_shared_from_this<Impl> {
  Impl(Executor& e, Registry* m, Tracer* t, FailureHook hook)
      : executor(e.root()),
        metrics(m),
        tracer(t),
        on_failure(std::move(hook)),
        strand(executor),
        scope(strand) {}

  void begin_stop() {
    std::vector<std::shared_ptr<detail::ActorCell>> all;
    {
      const std::lock_guard lock(mutex);
      if (stopping) return;
      stopping = true;
      all = cells;
    }
    (void)scope.spawn(stop_all(std::move(all)));
  }

  static Task<> stop_all(std::vector<std::shared_ptr<detail::ActorCell>> all) {
    for (auto cell = all.rbegin(); cell != all.rend(); ++cell) {
      auto stopped = OneShot<bool>::create();
      (*cell)->request_stop([stopped] { stopped->set(true); });
      co_await stopped->wait();
    }
  }

  Executor& executor;
  Registry* const metrics;
  Tracer* const tracer;
  FailureHook on_failure;
  std::function<void()> on_escalation;
  std::atomic<bool> escalated{false};
  std::mutex mutex;
  bool stopping = false;
  std::vector<std::shared_ptr<detail::ActorCell>> cells;
  std::size_t prune_at = 64;  // cells; stopped ones leave when there are more
  Strand strand;
  AsyncScope scope;
};

ActorSystem::ActorSystem(Executor& executor, Registry* metrics, Tracer* tracer, FailureHook on_failure) {
  if (!on_failure) {
    on_failure = [](const ActorFailure& failure) {
      std::fprintf(stderr, "helios: actor %s failed: %s\n", failure.actor.c_str(), failure.message.c_str());
    };
  }
  impl_ = std::make_shared<Impl>(executor, metrics, tracer, std::move(on_failure));
}

ActorSystem::~ActorSystem() {
  stop();
}

std::shared_ptr<Mailbox> ActorSystem::start(ActorOptions options, detail::ActorCell::Factory factory) {
  detail::ActorCell::Hooks hooks;
  hooks.on_failure = impl_->on_failure;
  hooks.escalate = [weak = std::weak_ptr<Impl>(impl_)] {
    const std::shared_ptr<Impl> impl = weak.lock();
    if (!impl || impl->escalated.exchange(true)) return;
    if (impl->on_escalation) impl->on_escalation();
    impl->begin_stop();
  };
  const std::shared_ptr<detail::ActorCell> cell =
      detail::ActorCell::create(impl_->executor, std::move(options), std::move(factory), std::move(hooks),
                                impl_->metrics, impl_->tracer);
  {
    const std::lock_guard lock(impl_->mutex);
    if (impl_->stopping) {
      cell->mailbox()->close();
      return cell->mailbox();
    }
  }
  cell->start();  // without the lock: constructors spawn actors of their own
  const std::lock_guard lock(impl_->mutex);
  if (impl_->stopping) {  // stopped meanwhile: nobody else will stop this one
    (void)impl_->scope.spawn(Impl::stop_all({cell}));
    return cell->mailbox();
  }
  if (impl_->cells.size() >= impl_->prune_at) {
    std::erase_if(impl_->cells, [](const auto& old) { return old->finished(); });
    impl_->prune_at = std::max<std::size_t>(64, impl_->cells.size() * 2);
  }
  impl_->cells.push_back(cell);
  return cell->mailbox();
}

void ActorSystem::stop() {
  impl_->begin_stop();
  Latch stopped;
  impl_->scope.when_empty([&stopped] { stopped.open(); });
  if (!impl_->executor.wait(stopped)) {
    // The executor runs nothing any more: everything is destroyed where it waits.
    impl_->scope.destroy_children();
    for (auto cell = impl_->cells.rbegin(); cell != impl_->cells.rend(); ++cell) (*cell)->destroy_now();
  }
}

Executor& ActorSystem::executor() noexcept {
  return impl_->executor;
}
Registry* ActorSystem::metrics() noexcept {
  return impl_->metrics;
}
Tracer* ActorSystem::tracer() noexcept {
  return impl_->tracer;
}
bool ActorSystem::escalated() const noexcept {
  return impl_->escalated;
}
void ActorSystem::on_escalation(std::function<void()> hook) {
  impl_->on_escalation = std::move(hook);
}

}  // namespace helios::runtime
