#pragma once
// Equal blocks cut from slabs of the device budget; a slab goes back as soon as its last block does.

#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <vector>

#include "gpu/device_budget.hpp"
#include "runtime/result.hpp"

namespace helios::model {

/// Block b is the block_bytes at base() + b * block_bytes(). Thread-safe.
class BlockPool {
 public:
  static constexpr std::size_t kSlabBlocks = 32;  // asked for at once; fewer when memory is short

  BlockPool(gpu::DeviceBudget& budget, std::size_t block_bytes, gpu::Use use);
  ~BlockPool();
  BlockPool(const BlockPool&) = delete;
  BlockPool& operator=(const BlockPool&) = delete;

  /// Appends `count` blocks to `out`, or nothing. Errors: out_of_memory.
  Result<void> take(std::size_t count, std::vector<std::int32_t>& out);
  void give_back(std::span<const std::int32_t> blocks);

  std::byte* base() const;
  std::size_t block_bytes() const noexcept { return block_bytes_; }
  std::size_t used() const;
  /// Blocks in granted slabs that nobody has.
  std::size_t spare() const;

 private:
  struct Piece {
    gpu::Slab slab;
    std::int32_t first = 0;  // its first block
    std::size_t count = 0;
    std::vector<std::int32_t> free;
  };
  bool grow();
  void put(std::int32_t block);
  void drop_empty();

  gpu::DeviceBudget& budget_;
  std::size_t block_bytes_;
  gpu::Use use_;
  mutable std::mutex mutex_;
  std::byte* base_ = nullptr;  // below the arena, so that ids are positive; fixed by the first slab
  std::map<std::int32_t, Piece> pieces_;  // by first block
  std::size_t used_ = 0, spare_ = 0;
};

}  // namespace helios::model
