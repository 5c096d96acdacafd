#pragma once
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "gpu/copy_engine.hpp"
#include "gpu/load_parts.hpp"

namespace helios::runtime {
class Tracer;
}

namespace helios::gpu {

/// The host's copy stream: one thread at low priority that reads a part into its staging buffer and repacks
/// it from there, so that staging stays in this core's cache and the page cache is touched once.
class HostCopyEngine final : public CopyEngine {
 public:
  HostCopyEngine(runtime::Tracer* tracer, int nice);
  /// Ends within one part; copies that are not done complete with `dropped`.
  ~HostCopyEngine() override;

  Result<Copy> start(LoadRequest request) override;

 private:
  struct Job {
    LoadRequest request;
    Event event;
  };
  void loop(int nice);
  Result<void> run(const LoadRequest& request);
  bool stopping();

  runtime::Tracer* tracer_;
  int track_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job> jobs_;
  bool stop_ = false;
  std::vector<std::byte> staging_;  // of the thread
  std::thread thread_;
};

}  // namespace helios::gpu
