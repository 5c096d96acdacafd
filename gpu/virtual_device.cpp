#include "gpu/virtual_device.hpp"

#include <algorithm>
#include <deque>
#include <optional>
#include <variant>

#include "gpu/load_parts.hpp"

namespace helios::gpu {

namespace {

/// What streams and copies share, alive as long as any job of theirs is queued on the executor.
struct World {
  runtime::Executor& executor;
  VirtualOptions options;
  std::size_t programs = 0, copies = 0;
};

runtime::Duration program_time(const World& world, const CommandList& commands) {
  return world.options.cost ? world.options.cost(commands) : std::chrono::milliseconds(1);
}

class VirtualStream final : public Stream {
 public:
  explicit VirtualStream(std::shared_ptr<World> world) : state_(std::make_shared<State>(std::move(world))) {}
  ~VirtualStream() override { state_->close(); }

  Result<void> launch(CommandList commands) override {
    for (const Op& op : commands) {
      if (Result<void> ok = validate(op); !ok) return ok;
    }
    if (state_->entries.size() >= kMaxQueued) return fail(Errc::busy, "the device stream's queue is full");
    state_->push(std::move(commands));
    return {};
  }
  Event record() override {
    Event event;
    state_->push(Record{event});
    return event;
  }
  void wait(Event event) override { state_->push(WaitFor{std::move(event)}); }

 private:
  struct Record {
    Event event;
  };
  struct WaitFor {
    Event event;
  };
  using Entry = std::variant<CommandList, Record, WaitFor>;

  struct State : std::enable_shared_from_this<State> {
    explicit State(std::shared_ptr<World> w) : world(std::move(w)) {}

    void push(Entry entry) {
      entries.push_back(std::move(entry));
      if (!running) next();
    }
    void next() {
      running = !entries.empty() && !closed;
      if (!running) return;
      Entry entry = std::move(entries.front());
      entries.pop_front();
      if (auto* commands = std::get_if<CommandList>(&entry)) {
        const runtime::TimePoint end = world->executor.now() + program_time(*world, *commands);
        world->executor.post_at(
            end, [self = shared_from_this(), list = std::move(*commands)] { self->run(list); });
      } else if (auto* record = std::get_if<Record>(&entry)) {
        world->executor.post([self = shared_from_this(), event = record->event] {
          event.complete(std::exchange(self->status, Result<void>()));
          self->next();
        });
      } else {
        std::get<WaitFor>(entry).event.on_complete([self = shared_from_this()](const Result<void>&) {
          self->world->executor.post([self] { self->next(); });
        });
      }
    }
    void run(const CommandList& commands) {
      if (closed) return;
      ++world->programs;
      if (world->options.fail_program > 0 &&
          world->programs == static_cast<std::size_t>(world->options.fail_program)) {
        status = fail(Errc::device_fault, "scripted fault in program " + std::to_string(world->programs));
      } else if (world->options.compute) {
        for (const Op& op : commands) run_reference(op);
      }
      next();
    }
    void close() {
      closed = true;
      for (Entry& entry : entries) {
        if (auto* record = std::get_if<Record>(&entry)) {
          record->event.complete(fail(Errc::dropped, "the stream was closed before its work ran"));
        }
      }
      entries.clear();
    }

    std::shared_ptr<World> world;
    std::deque<Entry> entries;
    Result<void> status;
    bool running = false, closed = false;
  };

  std::shared_ptr<State> state_;
};

class VirtualCopyEngine final : public CopyEngine {
 public:
  explicit VirtualCopyEngine(std::shared_ptr<World> world)
      : state_(std::make_shared<State>(std::move(world))) {}
  ~VirtualCopyEngine() override { state_->close(); }

  Result<Copy> start(LoadRequest request) override {
    if (Result<void> ok = validate(request); !ok) return ok.error();
    if (state_->jobs.size() >= kMaxQueued) return fail(Errc::busy, "the copy engine's queue is full");
    std::size_t bytes = 0;
    for (const LoadPiece& piece : request.pieces) bytes += static_cast<std::size_t>(piece.file_bytes);
    Job job{std::move(request), Event(), {}};
    job.parts = split(job.request);
    Copy copy(job.event, bytes);
    state_->jobs.push_back(std::move(job));
    if (!state_->running) state_->next();
    return copy;
  }

 private:
  struct Job {
    LoadRequest request;
    Event event;
    std::vector<LoadPart> parts;
    std::size_t index = 0, done = 0;
  };

  struct State : std::enable_shared_from_this<State> {
    explicit State(std::shared_ptr<World> w) : world(std::move(w)) {}

    void next() {
      running = !jobs.empty();
      if (!running) return;
      const Job& job = jobs.front();
      const double bytes =
          job.index < job.parts.size() ? static_cast<double>(job.parts[job.index].piece.file_bytes) : 0;
      const auto time = std::chrono::duration_cast<runtime::Duration>(
          std::chrono::duration<double>(bytes / world->options.copy_bytes_per_second));
      world->executor.post_at(world->executor.now() + time, [self = shared_from_this()] { self->step(); });
    }
    void step() {
      if (closed) return;
      Job& job = jobs.front();
      if (job.index == 0 &&
          ++world->copies == static_cast<std::size_t>(std::max(world->options.fail_copy, 0))) {
        return finish(fail(Errc::io_error, "scripted fault in copy " + std::to_string(world->copies)));
      }
      if (job.request.cancel.cancelled())
        return finish(fail(Errc::cancelled, job.request.label + ": the load was cancelled"));
      if (job.index < job.parts.size()) {
        const LoadPart& part = job.parts[job.index++];
        staging.resize(std::max(staging.size(), static_cast<std::size_t>(part.piece.file_bytes)));
        if (Result<void> loaded = load_part(part, staging); !loaded) return finish(loaded.error());
        job.done += static_cast<std::size_t>(part.piece.file_bytes);
        if (job.request.progress) job.request.progress(job.done);
      }
      if (job.index >= job.parts.size()) return finish({});
      next();
    }
    void finish(Result<void> status) {
      const Event event = jobs.front().event;
      jobs.pop_front();
      event.complete(std::move(status));
      next();
    }
    void close() {
      closed = true;
      for (const Job& job : jobs) job.event.complete(fail(Errc::dropped, "the copy engine was closed"));
      jobs.clear();
    }

    std::shared_ptr<World> world;
    std::deque<Job> jobs;  // the front one is in flight
    std::vector<std::byte> staging;
    bool running = false, closed = false;
  };

  std::shared_ptr<State> state_;
};

}  // namespace

struct VirtualDevice::Parts {
  std::shared_ptr<World> world;
  std::unique_ptr<DeviceBudget> budget;
  std::unique_ptr<VirtualCopyEngine> copies;
};

Result<std::unique_ptr<VirtualDevice>> VirtualDevice::create(runtime::Executor& executor,
                                                             VirtualOptions options) {
  Result<std::unique_ptr<DeviceBudget>> budget = DeviceBudget::create(options.arena_bytes);
  if (!budget) return budget.error();
  if (!(options.copy_bytes_per_second > 0))
    return fail(Errc::bad_request, "copy_bytes_per_second must be positive");
  (*budget)->fail_reserve(options.fail_reserve);
  auto parts = std::make_unique<Parts>();
  parts->world = std::make_shared<World>(World{executor, std::move(options)});
  parts->budget = std::move(*budget);
  parts->copies = std::make_unique<VirtualCopyEngine>(parts->world);
  return std::unique_ptr<VirtualDevice>(new VirtualDevice(std::move(parts)));
}

VirtualDevice::VirtualDevice(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
VirtualDevice::~VirtualDevice() = default;

DeviceBudget& VirtualDevice::budget() {
  return *parts_->budget;
}
CopyEngine& VirtualDevice::copy_engine() {
  return *parts_->copies;
}
Result<std::unique_ptr<Stream>> VirtualDevice::create_stream(StreamKind) {
  return std::unique_ptr<Stream>(std::make_unique<VirtualStream>(parts_->world));
}
std::size_t VirtualDevice::programs_run() const {
  return parts_->world->programs;
}
std::size_t VirtualDevice::copies_run() const {
  return parts_->world->copies;
}

}  // namespace helios::gpu
