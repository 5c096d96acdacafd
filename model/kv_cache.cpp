#include "model/kv_cache.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "model/kv_pools.hpp"

namespace helios::model {

KvCache::Sequence& KvCache::Sequence::operator=(Sequence&& other) noexcept {
  if (this != &other) {
    this->~Sequence();
    new (this) Sequence(std::move(other));
  }
  return *this;
}

KvCache::Sequence::~Sequence() {
  if (!pools_) return;
  for (const auto& blocks : blocks_) pools_->kv.give_back(blocks);
  pools_->rows.give_back(row_blocks_);
}

int KvCache::Sequence::filled(int layer) const noexcept {
  return std::cmp_less(layer, filled_.size()) ? filled_[static_cast<std::size_t>(layer)] : 0;
}

int KvCache::Sequence::row_depth(int position) const noexcept {
  return std::cmp_less(position, row_depths_.size()) ? row_depths_[static_cast<std::size_t>(position)] : 0;
}

KvCache::KvCache(gpu::DeviceBudget& budget, KvCacheOptions options)
    : options_(std::move(options)),
      budget_(budget),
      pools_(std::make_shared<Sequence::Pools>(budget, block_bytes(), row_block_bytes())) {}

std::size_t KvCache::block_bytes() const noexcept {
  return gpu::kv_block_bytes(options_.kv_type, options_.block_tokens, options_.kv_heads, options_.head_dim);
}

std::size_t KvCache::row_block_bytes() const noexcept {
  return gpu::row_block_bytes(options_.row_type, options_.block_tokens, options_.hidden);
}

int KvCache::pseudo_layer_of(int depth) const noexcept {
  const auto& exits = options_.block_exits;
  const auto it = std::find(exits.begin(), exits.end(), depth);
  return it == exits.end() ? -1 : options_.layers + static_cast<int>(it - exits.begin());
}

std::size_t KvCache::blocks_for(std::int64_t positions) const noexcept {
  return static_cast<std::size_t>((positions + options_.block_tokens - 1) / options_.block_tokens);
}

Result<void> KvCache::reserve(Sequence& s, int positions, LayerRange range) {
  if (range.first < 0 || range.first >= range.last || range.last > options_.layers || positions < 0) {
    return fail(Errc::bad_request, fmt::format("{} positions in layers {}..{}: outside the model's 1..{}",
                                               positions, range.first + 1, range.last, options_.layers));
  }
  const std::size_t all = static_cast<std::size_t>(options_.layers) + options_.block_exits.size();
  if (!s.pools_) {
    s.pools_ = pools_;
    s.blocks_.resize(all);
    s.filled_.resize(all, 0);
  }
  const std::int32_t done = s.filled_[0];
  if (range.first > 0) {
    for (int p = 0; p < done; ++p) {
      if (s.row_depth(p) != range.first) {
        return fail(
            Errc::unsupported,
            fmt::format("position {} has no stored row of depth {}: prefill again instead", p, range.first));
      }
    }
  }
  // Once every layer is filled there is nothing left to catch up.
  if (range.last == options_.layers && done > 0 &&
      s.filled_[static_cast<std::size_t>(options_.layers) - 1] == done) {
    pools_->rows.give_back(s.row_blocks_);
    s.row_blocks_.clear();
    s.row_depths_.clear();
  }

  const std::size_t wanted = blocks_for(positions);
  std::vector<std::size_t> growing;
  std::size_t missing = 0;
  const int pseudo = pseudo_layer_of(range.last);
  for (std::size_t layer = 0; layer < all; ++layer) {
    const bool asked = std::cmp_greater_equal(layer, range.first) && std::cmp_less(layer, range.last);
    const bool exit_block = std::cmp_equal(layer, pseudo) ||
                            (std::cmp_greater_equal(layer, options_.layers) && !s.blocks_[layer].empty());
    if ((!asked && !exit_block) || s.blocks_[layer].size() >= wanted) continue;
    growing.push_back(layer);
    missing += wanted - s.blocks_[layer].size();
  }
  const bool keep = options_.keep_rows && (range.last < options_.layers || !s.row_blocks_.empty());
  const std::size_t missing_rows = keep && s.row_blocks_.size() < wanted ? wanted - s.row_blocks_.size() : 0;

  std::vector<std::int32_t> kv, rows;
  if (Result<void> taken = pools_->kv.take(missing, kv); !taken) return taken;
  if (Result<void> taken = pools_->rows.take(missing_rows, rows); !taken) {
    pools_->kv.give_back(kv);
    return taken;
  }
  std::size_t next = 0;
  for (const std::size_t layer : growing) {
    auto& blocks = s.blocks_[layer];
    while (blocks.size() < wanted) blocks.push_back(kv[next++]);
  }
  s.row_blocks_.insert(s.row_blocks_.end(), rows.begin(), rows.end());
  return {};
}

void KvCache::release(Sequence& sequence) {
  sequence = Sequence();
}

void KvCache::release_layers(Sequence& s, LayerRange range) {
  for (std::size_t layer = 0; layer < s.blocks_.size(); ++layer) {
    const bool inside = std::cmp_greater_equal(layer, range.first) && std::cmp_less(layer, range.last);
    bool of_exit = false;
    if (std::cmp_greater_equal(layer, options_.layers)) {
      const int exit = options_.block_exits[layer - static_cast<std::size_t>(options_.layers)];
      of_exit = exit > range.first && exit <= range.last;
    }
    if (!inside && !of_exit) continue;
    pools_->kv.give_back(s.blocks_[layer]);
    s.blocks_[layer].clear();
    s.filled_[layer] = 0;
  }
}

std::int64_t KvCache::blocks_used() const {
  return static_cast<std::int64_t>(pools_->kv.used());
}

std::int64_t KvCache::blocks_free() const {
  return static_cast<std::int64_t>(pools_->kv.spare() + budget_.free() / block_bytes());
}

std::size_t KvCache::sequence_bytes(std::int64_t tokens, int depth) const {
  const std::size_t blocks = blocks_for(tokens);
  const std::size_t layers = static_cast<std::size_t>(depth) + (pseudo_layer_of(depth) >= 0 ? 1 : 0);
  const bool rows = options_.keep_rows && depth < options_.layers;
  return blocks * (layers * block_bytes() + (rows ? row_block_bytes() : 0));
}

bool KvCache::could_ever_fit(std::int64_t tokens, int depth) const {
  const std::size_t fixed = budget_.used(gpu::Use::weights) + budget_.used(gpu::Use::workspace);
  const std::size_t room = budget_.total() - std::min(budget_.total(), fixed);
  const std::size_t need = sequence_bytes(tokens, depth);
  // A slab may lose a block at its ends; what does not fill large slabs comes in smaller ones
  // (BlockPool::grow).
  constexpr std::size_t kSmallSlabs = 10;
  return need + need / BlockPool::kSlabBlocks + kSmallSlabs * (block_bytes() + row_block_bytes()) <= room;
}

}  // namespace helios::model
