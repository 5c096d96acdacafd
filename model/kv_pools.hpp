#pragma once
// The inside of KvCache, for the forward pass.

#include "model/block_pool.hpp"
#include "model/kv_cache.hpp"

namespace helios::model {

struct KvCache::Sequence::Pools {
  Pools(gpu::DeviceBudget& budget, std::size_t kv_bytes, std::size_t row_bytes)
      : kv(budget, kv_bytes, gpu::Use::kv), rows(budget, row_bytes, gpu::Use::rows) {}
  BlockPool kv;
  BlockPool rows;
};

/// A read-only look at a sequence's blocks.
class KvAccess {
 public:
  explicit KvAccess(const KvCache::Sequence& sequence) : sequence_(sequence) {}
  const std::vector<std::int32_t>& blocks(std::size_t layer) const { return sequence_.blocks_[layer]; }
  const std::vector<std::int32_t>& row_blocks() const { return sequence_.row_blocks_; }
  static std::byte* kv_base(const KvCache& cache) { return cache.pools_->kv.base(); }
  static std::byte* row_base(const KvCache& cache) { return cache.pools_->rows.base(); }

 private:
  const KvCache::Sequence& sequence_;
};

}  // namespace helios::model
