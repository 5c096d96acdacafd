#pragma once
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <variant>

#include "gpu/stream.hpp"
#include "gpu/worker_pool.hpp"

namespace helios::runtime {
class Tracer;
}

namespace helios::gpu {

/// The pool of a device: its streams take turns, a program at a time.
struct SharedPool {
  explicit SharedPool(int threads) : pool(threads) {}
  std::mutex turn;
  WorkerPool pool;
};

/// A stream with a thread of its own. A compute stream's thread works as thread 0 of the pool; a copy stream
/// runs its programs alone, at low priority.
class HostStream final : public Stream {
 public:
  struct Setup {
    StreamKind kind = StreamKind::compute;
    const KernelTable* kernels = nullptr;
    std::shared_ptr<SharedPool> pool;
    runtime::Tracer* tracer = nullptr;
    int nice = 0;
  };

  explicit HostStream(Setup setup);
  /// Ends the running program; what is queued behind it does not run: its events complete with `dropped`.
  ~HostStream() override;

  Result<void> launch(CommandList commands) override;
  Event record() override;
  void wait(Event event) override;

 private:
  struct WaitFor {
    Event event;
  };
  struct Record {
    Event event;
  };
  using Entry = std::variant<CommandList, Record, WaitFor>;
  struct Queue {  // shared with the callbacks of events waited for
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<Entry> entries;
    bool stop = false;
  };

  void loop();
  void execute(const CommandList& commands);
  void hold(const Event& event);

  const Setup setup_;
  std::shared_ptr<Queue> queue_ = std::make_shared<Queue>();
  int track_ = 0;              // of the trace
  std::vector<Phase> phases_;  // kept for its capacity
  std::thread thread_;
};

/// Adds to the calling thread's nice value; without the right to, nothing changes.
void lower_priority(int nice);

}  // namespace helios::gpu
