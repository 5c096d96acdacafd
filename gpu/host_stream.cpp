#include "gpu/host_stream.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include "runtime/trace.hpp"

namespace helios::gpu {

void lower_priority(int nice) {
  if (nice == 0) return;
  const auto thread = static_cast<id_t>(::gettid());  // Linux: niceness is a thread's own
  ::setpriority(PRIO_PROCESS, thread, ::getpriority(PRIO_PROCESS, thread) + nice);
}

HostStream::HostStream(Setup setup) : setup_(std::move(setup)), thread_([this] { loop(); }) {}

HostStream::~HostStream() {
  {
    const std::lock_guard lock(queue_->mutex);
    queue_->stop = true;
  }
  queue_->changed.notify_all();
  thread_.join();
  for (Entry& entry : queue_->entries) {
    if (const auto* record = std::get_if<Record>(&entry)) {
      record->event.complete(fail(Errc::dropped, "the stream was closed before its work ran"));
    }
  }
}

Result<void> HostStream::launch(CommandList commands) {
  for (const Op& op : commands) {
    if (Result<void> ok = validate(op); !ok) return ok;
  }
  {
    const std::lock_guard lock(queue_->mutex);
    if (queue_->entries.size() >= kMaxQueued) return fail(Errc::busy, "the device stream's queue is full");
    queue_->entries.emplace_back(std::move(commands));
  }
  queue_->changed.notify_all();
  return {};
}

Event HostStream::record() {
  Event event;
  {
    const std::lock_guard lock(queue_->mutex);
    if (queue_->entries.size() >= 2 * kMaxQueued) {
      event.complete(fail(Errc::busy, "the device stream's queue is full"));
      return event;
    }
    queue_->entries.emplace_back(Record{event});
  }
  queue_->changed.notify_all();
  return event;
}

void HostStream::wait(Event event) {
  const std::lock_guard lock(queue_->mutex);
  queue_->entries.emplace_back(WaitFor{std::move(event)});
  queue_->changed.notify_all();
}

void HostStream::loop() {
  if (setup_.kind == StreamKind::copy) lower_priority(setup_.nice);
  if (setup_.tracer != nullptr) {
    track_ = setup_.tracer->track(setup_.kind == StreamKind::compute ? "stream/compute" : "stream/copy");
  }
  for (;;) {
    std::unique_lock lock(queue_->mutex);
    queue_->changed.wait(lock, [this] { return queue_->stop || !queue_->entries.empty(); });
    if (queue_->stop) return;
    Entry entry = std::move(queue_->entries.front());
    queue_->entries.pop_front();
    lock.unlock();
    if (const auto* commands = std::get_if<CommandList>(&entry)) {
      execute(*commands);
    } else if (const auto* record = std::get_if<Record>(&entry)) {
      record->event.complete({});
    } else {
      hold(std::get<WaitFor>(entry).event);
    }
  }
}

void HostStream::execute(const CommandList& commands) {
  const bool compute = setup_.kind == StreamKind::compute;
  const runtime::TraceSpan span(setup_.tracer, "device", "program", track_);
  phases_.clear();
  for (const Op& op : commands)
    append_phases(op, *setup_.kernels, compute ? setup_.pool->pool.threads() : 1, phases_);
  if (compute) {
    const std::lock_guard turn(setup_.pool->turn);
    setup_.pool->pool.run(phases_);
  } else {
    for (const Phase& phase : phases_) phase.run(0);
  }
}

void HostStream::hold(const Event& event) {
  event.on_complete([queue = queue_](const Result<void>&) {
    {
      const std::lock_guard lock(queue->mutex);
    }  // no wake-up between the other side's look and its wait
    queue->changed.notify_all();
  });
  std::unique_lock lock(queue_->mutex);
  queue_->changed.wait(lock, [&] { return queue_->stop || event.done(); });
}

}  // namespace helios::gpu
