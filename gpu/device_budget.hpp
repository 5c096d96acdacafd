#pragma once
#include <array>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>

#include "runtime/result.hpp"

namespace helios::gpu {

enum class Use : unsigned char { weights, kv, rows, workspace };
inline constexpr std::size_t kUses = 4;

class DeviceBudget;

/// A granted piece of the arena; gives itself back. 64-byte aligned, never moves. Outlived by its budget.
class Slab {
 public:
  Slab() = default;
  Slab(Slab&& other) noexcept { swap(other); }
  Slab& operator=(Slab&& other) noexcept {
    Slab(std::move(other)).swap(*this);
    return *this;
  }
  Slab(const Slab&) = delete;
  Slab& operator=(const Slab&) = delete;
  ~Slab();

  std::byte* data() const noexcept { return data_; }
  std::size_t size() const noexcept { return size_; }  // as asked for
  explicit operator bool() const noexcept { return data_ != nullptr; }

 private:
  friend class DeviceBudget;
  void swap(Slab& other) noexcept {
    std::swap(budget_, other.budget_);
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(use_, other.use_);
  }
  DeviceBudget* budget_ = nullptr;
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  Use use_ = Use::weights;
};

/// All device memory of one device: one arena of an exact size, granted in slabs, best fit with coalescing.
/// Thread-safe. Sizes count rounded up to 64 bytes; the arena never grows.
class DeviceBudget {
 public:
  static constexpr std::size_t kAlignment = 64;

  /// Errors: bad_request (size 0), out_of_memory (the system has no such address range).
  static Result<std::unique_ptr<DeviceBudget>> create(std::size_t bytes);
  ~DeviceBudget();
  DeviceBudget(const DeviceBudget&) = delete;
  DeviceBudget& operator=(const DeviceBudget&) = delete;

  /// Contents are undefined. Errors: out_of_memory, naming the use, what was asked for and what is free.
  Result<Slab> reserve(std::size_t bytes, Use use);

  std::size_t total() const noexcept { return total_; }
  std::size_t used(Use use) const;
  std::size_t used() const;
  std::size_t free() const { return total_ - used(); }
  /// The largest slab that would be granted now: free() may be in pieces.
  std::size_t largest_free() const;
  /// Test hook: the k-th reserve from now fails (1 = the next); 0 turns it off.
  void fail_reserve(int k);

 private:
  friend class Slab;
  DeviceBudget(std::byte* base, std::size_t total);
  void release(std::byte* data, std::size_t size, Use use) noexcept;

  std::byte* base_;
  std::size_t total_;
  mutable std::mutex mutex_;
  std::map<std::size_t, std::size_t> holes_;  // offset -> size, disjoint, never adjacent
  std::array<std::size_t, kUses> used_{};
  int fail_in_ = 0;
};

}  // namespace helios::gpu
