#include "gpu/worker_pool.hpp"

#include <catch2/catch_test_macros.hpp>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <thread>

namespace helios::gpu {

namespace {

/// Ends the process with a word when a test hangs: a lost phase would otherwise wait for ever.
class Watchdog {
 public:
  explicit Watchdog(std::chrono::seconds limit)
      : thread_([this, limit] {
          std::unique_lock lock(mutex_);
          if (changed_.wait_for(lock, limit, [this] { return done_; })) return;
          std::fputs("worker pool: a program did not end\n", stderr);
          std::abort();
        }) {}
  ~Watchdog() {
    {
      const std::lock_guard lock(mutex_);
      done_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool done_ = false;
  std::thread thread_;
};

}  // namespace

TEST_CASE("WorkerPool: tiny programs, each chunk once, phases in order", "[gpu]") {
  const Watchdog watchdog(std::chrono::seconds(100));
  for (const int threads : {1, 2, 3, 8}) {  // also more than cores
    WorkerPool pool(threads);
    // A chain of doublings: a chunk lost, run twice or run before its phase shows in the sum.
    std::vector<float> x(64);
    std::vector<Op> ops(6, Op(AddRows{.x = x.data(), .y = x.data(), .rows = 64, .cols = 1}));
    for (int run = 0; run < 3000; ++run) {
      std::vector<Phase> phases;
      const int count = 1 + run % 6;
      for (int i = 0; i < count; ++i) {
        const int chunks = 1 + (run + 3 * i) % 9;
        phases.push_back({.kernels = &reference_kernels(),
                          .op = &ops[static_cast<std::size_t>(i)],
                          .chunks = chunks,
                          .brief = run % 3 != 0});
      }
      std::fill(x.begin(), x.end(), 1.0F);
      pool.run(phases);
      for (const float v : x) {
        if (v != static_cast<float>(1 << count))
          FAIL("threads " << threads << " run " << run << " value " << v);
      }
    }
  }
}

TEST_CASE("WorkerPool: an empty program, and a pool that never ran", "[gpu]") {
  const Watchdog watchdog(std::chrono::seconds(30));
  WorkerPool pool(4);
  pool.run({});
  CHECK(pool.threads() == 4);
}

}  // namespace helios::gpu
