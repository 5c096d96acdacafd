#include "gpu/worker_pool.hpp"

#include <algorithm>
#include <cassert>
#include <chrono>

namespace helios::gpu {

namespace {

constexpr auto kSpin = std::chrono::microseconds(50);

constexpr std::uint64_t make_word(std::uint32_t sequence, std::uint64_t end, std::uint64_t next) {
  return std::uint64_t{sequence} << 32 | end << 16 | next;
}
constexpr std::uint32_t sequence_of(std::uint64_t word) {
  return static_cast<std::uint32_t>(word >> 32);
}
constexpr bool active(std::uint64_t ticket) {
  return (ticket >> 16 & 0xFFFF) != 0;
}
constexpr bool exhausted(std::uint64_t word) {
  return (word & 0xFFFF) >= (word >> 16 & 0xFFFF);
}

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

WorkerPool::WorkerPool(int threads)
    : threads_(std::clamp(threads, 1, kMaxThreads)), cursors_(static_cast<std::size_t>(threads_)) {
  for (int i = 1; i < threads_; ++i) {
    workers_.emplace_back([this, i] {
      while (!stop_.load(std::memory_order_acquire)) work(i);
    });
  }
}

WorkerPool::~WorkerPool() {
  stop_.store(true, std::memory_order_release);
  publish(make_word(sequence_of(ticket_.load()) + 1, 0, 0));
  for (std::thread& worker : workers_) worker.join();
}

void WorkerPool::run(std::span<const Phase> program) {
  if (program.empty()) return;
  program_ = program;
  base_ = sequence_of(ticket_.load()) + 1;
  advance(base_);
  work(0);
}

/// Opens phase `sequence`, or the idle state after the last. Phases of one chunk are run here at once:
/// opening them to all threads would cost more than they do.
void WorkerPool::advance(std::uint32_t sequence) {
  while (sequence - base_ < program_.size() && program_[sequence - base_].chunks == 1) {
    program_[sequence - base_].run(0);
    ++sequence;
  }
  if (sequence - base_ < program_.size()) {
    open(sequence);
  } else {
    publish(make_word(sequence, 0, 0));
  }
}

void WorkerPool::open(std::uint32_t sequence) {
  const int chunks = program_[sequence - base_].chunks;
  assert(chunks > 0 && chunks <= kMaxChunks);
  chunks_left_.store(chunks, std::memory_order_relaxed);  // before the cursors: claims may begin at once
  for (int i = 0; i < threads_; ++i) {
    const auto begin = static_cast<std::uint64_t>(std::int64_t{i} * chunks / threads_);
    const auto end = static_cast<std::uint64_t>((std::int64_t{i} + 1) * chunks / threads_);
    cursors_[static_cast<std::size_t>(i)].value.store(make_word(sequence, end, begin),
                                                      std::memory_order_release);
  }
  publish(make_word(sequence, 1, 0));
}

/// Never moves the ticket backwards: once the cursors are stored, peers may end this phase and open the next
/// before the opener gets here. The look at sleepers_ pairs with wait(): both sides are sequentially
/// consistent.
void WorkerPool::publish(std::uint64_t ticket) {
  std::uint64_t now = ticket_.load();
  while (static_cast<std::int32_t>(sequence_of(ticket) - sequence_of(now)) > 0 &&
         !ticket_.compare_exchange_weak(now, ticket)) {
  }
  if (sleepers_.load() != 0) {
    epoch_.fetch_add(1);
    epoch_.notify_all();
  }
}

void WorkerPool::wait(std::uint32_t sequence, bool brief) {
  auto limit = std::chrono::steady_clock::now() + (brief ? kSpin : std::chrono::microseconds(0));
  for (unsigned i = 0; sequence_of(ticket_.load(std::memory_order_acquire)) == sequence; ++i) {
    pause();
    if (i % 16 != 15 || std::chrono::steady_clock::now() < limit) continue;
    const std::uint32_t epoch = epoch_.load();
    sleepers_.fetch_add(1);
    if (sequence_of(ticket_.load()) == sequence) epoch_.wait(epoch);
    sleepers_.fetch_sub(1);
    limit = std::chrono::steady_clock::now() + (brief ? kSpin : std::chrono::microseconds(0));
  }
}

/// Works until the program is over (thread 0), or for one phase or wait (others, called in a loop).
void WorkerPool::work(int thread) {
  for (;;) {
    const std::uint64_t ticket = ticket_.load(std::memory_order_acquire);
    if (!active(ticket) && (thread == 0 || stop_.load(std::memory_order_acquire))) return;
    std::uint32_t sequence = sequence_of(ticket);
    int done = 0;
    bool brief = true;
    for (int k = 0; active(ticket) && k < threads_; ++k) {  // its own range first, then the others'
      auto& cursor = cursors_[static_cast<std::size_t>((thread + k) % threads_)].value;
      // A look before the claim keeps `next` bounded and the line shared.
      while (!exhausted(cursor.load(std::memory_order_acquire))) {
        const std::uint64_t claim = cursor.fetch_add(1, std::memory_order_acq_rel);
        if (exhausted(claim)) break;
        // The claim may be of a later phase than the ticket read above: valid all the same, since that phase
        // cannot end before this chunk is counted.
        sequence = sequence_of(claim);
        const Phase& phase = program_[sequence - base_];
        phase.run(static_cast<int>(claim & 0xFFFF));
        brief = phase.brief;
        ++done;
      }
    }
    if (done > 0 && chunks_left_.fetch_sub(done, std::memory_order_acq_rel) == done) {
      advance(sequence + 1);
    } else {
      wait(sequence, brief);
    }
  }
}

}  // namespace helios::gpu
