#pragma once
#include <atomic>
#include <cstdint>
#include <span>
#include <thread>
#include <vector>

#include "gpu/kernels/kernel_table.hpp"

namespace helios::gpu {

/// Threads that run a program of phases without a central thread: each thread owns a contiguous range of a
/// phase's chunks and then steals from the others, and whoever ends a phase opens the next. So at most one
/// chunk waits for a thread that the system took off its core. Waiting threads spin for about 50
/// microseconds, then sleep.
class WorkerPool {
 public:
  static constexpr int kMaxThreads = 256;
  static constexpr int kMaxChunks = 65'000;

  explicit WorkerPool(int threads);  // the caller of run() is one of them
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  /// One caller at a time. Returns when all phases are done; the program must live until then.
  void run(std::span<const Phase> program);
  int threads() const noexcept { return threads_; }

 private:
  /// sequence:32 | end:16 | next:16, so that a claim names its phase and its chunk in one step.
  struct alignas(64) Cursor {
    std::atomic<std::uint64_t> value{0};
  };

  void open(std::uint32_t sequence);
  void advance(std::uint32_t sequence);
  void publish(std::uint64_t ticket);
  void work(int thread);
  void wait(std::uint32_t sequence, bool brief);

  const int threads_;
  std::vector<Cursor> cursors_;
  alignas(64) std::atomic<std::uint64_t> ticket_{0};  // sequence:32 | active:16 | 0:16
  alignas(64) std::atomic<int> chunks_left_{0};
  alignas(64) std::atomic<std::uint32_t> epoch_{0};
  std::atomic<std::uint32_t> sleepers_{0};
  alignas(64) std::span<const Phase> program_;
  std::uint32_t base_ = 0;  // sequence of the program's first phase
  std::atomic<bool> stop_{false};
  std::vector<std::thread> workers_;
};

}  // namespace helios::gpu
