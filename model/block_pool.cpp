#include "model/block_pool.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace helios::model {

BlockPool::BlockPool(gpu::DeviceBudget& budget, std::size_t block_bytes, gpu::Use use)
    : budget_(budget), block_bytes_(block_bytes), use_(use) {}

BlockPool::~BlockPool() = default;

std::byte* BlockPool::base() const {
  const std::lock_guard lock(mutex_);
  return base_;
}

std::size_t BlockPool::used() const {
  const std::lock_guard lock(mutex_);
  return used_;
}

std::size_t BlockPool::spare() const {
  const std::lock_guard lock(mutex_);
  return spare_;
}

bool BlockPool::grow() {
  // A slab begins anywhere, blocks begin at multiples of their size from the base: up to one block is lost.
  for (const std::size_t blocks : {kSlabBlocks, std::size_t{8}, std::size_t{2}, std::size_t{1}}) {
    Result<gpu::Slab> slab = budget_.reserve(blocks * block_bytes_, use_);
    if (!slab) continue;
    const auto address = reinterpret_cast<std::uintptr_t>(slab->data());
    if (base_ == nullptr) {
      const std::uintptr_t below = (budget_.total() / block_bytes_ + 1) * block_bytes_;
      base_ = reinterpret_cast<std::byte*>(address - below);
    }
    const std::uintptr_t offset = address - reinterpret_cast<std::uintptr_t>(base_);
    const std::uintptr_t first = (offset + block_bytes_ - 1) / block_bytes_;
    const std::uintptr_t end = (offset + blocks * block_bytes_) / block_bytes_;
    if (end <= first) continue;
    Piece piece;
    piece.slab = std::move(*slab);
    piece.first = static_cast<std::int32_t>(first);
    piece.count = end - first;
    for (std::uintptr_t b = end; b > first; --b) piece.free.push_back(static_cast<std::int32_t>(b - 1));
    spare_ += piece.count;
    pieces_.emplace(piece.first, std::move(piece));
    return true;
  }
  return false;
}

Result<void> BlockPool::take(std::size_t count, std::vector<std::int32_t>& out) {
  const std::lock_guard lock(mutex_);
  while (spare_ < count) {
    if (grow()) continue;
    const std::size_t had = spare_;
    drop_empty();
    return fail(Errc::out_of_memory,
                fmt::format("{} blocks of {} bytes are needed, {} fit in the {} bytes that are "
                            "free; raise --memory or run fewer or shorter requests",
                            count, block_bytes_, had, budget_.free()));
  }
  out.reserve(out.size() + count);
  for (auto& [first, piece] : pieces_) {
    while (count > 0 && !piece.free.empty()) {
      out.push_back(piece.free.back());
      piece.free.pop_back();
      --count;
      ++used_;
      --spare_;
    }
    if (count == 0) break;
  }
  return {};
}

void BlockPool::put(std::int32_t block) {
  auto it = std::prev(pieces_.upper_bound(block));
  it->second.free.push_back(block);
  --used_;
  ++spare_;
}

void BlockPool::give_back(std::span<const std::int32_t> blocks) {
  if (blocks.empty()) return;
  const std::lock_guard lock(mutex_);
  for (const std::int32_t block : blocks) put(block);
  drop_empty();
}

void BlockPool::drop_empty() {
  std::erase_if(pieces_, [&](const auto& entry) {
    const Piece& piece = entry.second;
    if (piece.free.size() < piece.count) return false;
    spare_ -= piece.count;
    return true;
  });
}

}  // namespace helios::model
