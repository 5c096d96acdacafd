#include "gpu/device_budget.hpp"

#include <sys/mman.h>

#include <algorithm>

namespace helios::gpu {

namespace {

constexpr std::array<const char*, kUses> kUseNames{"weights", "kv", "rows", "workspace"};

std::size_t round_up(std::size_t bytes) {
  return (bytes + DeviceBudget::kAlignment - 1) / DeviceBudget::kAlignment * DeviceBudget::kAlignment;
}

}  // namespace

Slab::~Slab() {
  if (budget_ != nullptr) budget_->release(data_, size_, use_);
}

Result<std::unique_ptr<DeviceBudget>> DeviceBudget::create(std::size_t bytes) {
  const std::size_t total = bytes / kAlignment * kAlignment;
  if (total == 0) return fail(Errc::bad_request, "device memory must be at least 64 bytes");
  // Pages are claimed when first touched, so an arena costs what is used of it.
  void* base =
      ::mmap(nullptr, total, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) {
    return fail(Errc::out_of_memory,
                "the system grants no " + std::to_string(total) + " bytes of device memory");
  }
  ::madvise(base, total, MADV_HUGEPAGE);  // only advice: 5-8 % of decode speed where it is taken
  return std::unique_ptr<DeviceBudget>(new DeviceBudget(static_cast<std::byte*>(base), total));
}

DeviceBudget::DeviceBudget(std::byte* base, std::size_t total) : base_(base), total_(total) {
  holes_[0] = total;
}

DeviceBudget::~DeviceBudget() {
  ::munmap(base_, total_);
}

Result<Slab> DeviceBudget::reserve(std::size_t bytes, Use use) {
  const std::size_t need = std::max(round_up(bytes), kAlignment);
  const std::lock_guard lock(mutex_);
  const bool faulted = fail_in_ > 0 && --fail_in_ == 0;
  auto best = holes_.end();
  for (auto it = holes_.begin(); it != holes_.end(); ++it) {
    if (it->second >= need && (best == holes_.end() || it->second < best->second)) best = it;
  }
  if (faulted || best == holes_.end() || bytes > total_) {
    std::size_t free_bytes = 0, largest = 0;
    for (const auto& [offset, size] : holes_) {
      free_bytes += size;
      largest = std::max(largest, size);
    }
    return fail(Errc::out_of_memory,
                std::string("no device memory for ") + kUseNames[static_cast<std::size_t>(use)] + ": " +
                    std::to_string(bytes) + " bytes asked for, " + std::to_string(free_bytes) + " of " +
                    std::to_string(total_) + " free, the largest piece " + std::to_string(largest));
  }
  const auto [offset, size] = *best;
  holes_.erase(best);
  if (size > need) holes_[offset + need] = size - need;
  used_[static_cast<std::size_t>(use)] += need;
  Slab slab;
  slab.budget_ = this;
  slab.data_ = base_ + offset;
  slab.size_ = bytes;
  slab.use_ = use;
  return slab;
}

void DeviceBudget::release(std::byte* data, std::size_t size, Use use) noexcept {
  std::size_t bytes = std::max(round_up(size), kAlignment);
  auto offset = static_cast<std::size_t>(data - base_);
  const std::lock_guard lock(mutex_);
  used_[static_cast<std::size_t>(use)] -= bytes;
  auto next = holes_.lower_bound(offset);
  if (next != holes_.end() && offset + bytes == next->first) {
    bytes += next->second;
    next = holes_.erase(next);
  }
  if (next != holes_.begin()) {
    const auto previous = std::prev(next);
    if (previous->first + previous->second == offset) {
      previous->second += bytes;
      return;
    }
  }
  holes_.emplace(offset, bytes);
}

std::size_t DeviceBudget::used(Use use) const {
  const std::lock_guard lock(mutex_);
  return used_[static_cast<std::size_t>(use)];
}

std::size_t DeviceBudget::used() const {
  const std::lock_guard lock(mutex_);
  std::size_t sum = 0;
  for (const std::size_t bytes : used_) sum += bytes;
  return sum;
}

std::size_t DeviceBudget::largest_free() const {
  const std::lock_guard lock(mutex_);
  std::size_t largest = 0;
  for (const auto& [offset, size] : holes_) largest = std::max(largest, size);
  return largest;
}

void DeviceBudget::fail_reserve(int k) {
  const std::lock_guard lock(mutex_);
  fail_in_ = k;
}

}  // namespace helios::gpu
