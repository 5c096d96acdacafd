#pragma once
// Keys, values and residual rows of running sequences, in blocks that come from the device budget and go back
// to it.

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "gpu/data_type.hpp"
#include "gpu/device_budget.hpp"
#include "gpu/kv_layout.hpp"
#include "runtime/result.hpp"

namespace helios::model {

struct LayerRange {
  int first = 0, last = 0;  // [first, last), 0-based: [0, E) is depth E
};

struct KvCacheOptions {
  int layers = 0;                // L
  std::vector<int> block_exits;  // exits whose head has attention of its own: pseudo-layers L, L+1, …
  int kv_heads = 0, head_dim = 0;
  std::int64_t hidden = 0;
  gpu::DataType kv_type = gpu::DataType::f16;
  gpu::DataType row_type = gpu::DataType::f16;
  bool keep_rows = true;  // residual rows of positions below depth L
  int block_tokens = 32;
};

class BlockPool;

/// Paged by layer. Blocks are taken and given back between steps only, by whoever holds the step credit;
/// could_ever_fit may be called from any thread.
class KvCache {
 public:
  /// The state of one sequence. Gives its blocks back when destroyed. Move-only; must not move during a step.
  class Sequence {
   public:
    Sequence() = default;
    Sequence(Sequence&&) noexcept = default;
    Sequence& operator=(Sequence&& other) noexcept;
    Sequence(const Sequence&) = delete;
    Sequence& operator=(const Sequence&) = delete;
    ~Sequence();

    /// Positions whose KV of `layer` (0-based) is there, counted from 0.
    int filled(int layer) const noexcept;
    /// Ids of the positions run so far, as given in step rows.
    std::span<const std::int32_t> tokens() const noexcept { return tokens_; }
    /// Depth of the stored residual of `position`, 0 when none is kept.
    int row_depth(int position) const noexcept;

   private:
    friend class KvCache;
    friend class KvAccess;
    friend class StepDraft;
    struct Pools;
    std::shared_ptr<Pools> pools_;                   // of the cache it was reserved in
    std::vector<std::vector<std::int32_t>> blocks_;  // [layers + pseudo-layers][block]
    std::vector<std::int32_t> row_blocks_;
    std::vector<std::int32_t> filled_;      // [layers + pseudo-layers]
    std::vector<std::int16_t> row_depths_;  // by position
    std::vector<std::int32_t> tokens_;
  };

  KvCache(gpu::DeviceBudget& budget, KvCacheOptions options);

  /// Room for `positions` positions in the layers of `range`; in what else the sequence holds already
  /// (an exit's pseudo-layer, residual rows) too. All or nothing. With range.first > 0 the layers are to be
  /// filled by catch-up from rows of depth range.first. Errors: out_of_memory; unsupported (rows of that
  /// depth are not kept for every position: prefill again instead); bad_request (a range outside the model).
  Result<void> reserve(Sequence& sequence, int positions, LayerRange range);
  /// Everything back; the sequence is empty.
  void release(Sequence& sequence);
  /// The blocks of these layers back, and of the pseudo-layers of exits in (first, last].
  void release_layers(Sequence& sequence, LayerRange range);

  /// KV blocks of one layer: in use, and what memory not yet granted could still become.
  std::int64_t blocks_used() const;
  std::int64_t blocks_free() const;
  std::int64_t blocks_total() const { return blocks_used() + blocks_free(); }
  /// Whether one sequence of `tokens` at `depth` fits beside the weights and workspaces granted now, were no
  /// other sequence there. Careful side: counts the loss at slab ends.
  bool could_ever_fit(std::int64_t tokens, int depth) const;

  /// The pseudo-layer of the exit at `depth`, or -1 when its head has no block.
  int pseudo_layer_of(int depth) const noexcept;
  std::size_t block_bytes() const noexcept;
  std::size_t row_block_bytes() const noexcept;
  const KvCacheOptions& options() const noexcept { return options_; }
  /// Bytes that one sequence of `tokens` at `depth` takes, in whole blocks.
  std::size_t sequence_bytes(std::int64_t tokens, int depth) const;

 private:
  friend class KvAccess;
  friend class StepDraft;
  std::size_t blocks_for(std::int64_t positions) const noexcept;

  KvCacheOptions options_;
  gpu::DeviceBudget& budget_;
  std::shared_ptr<Sequence::Pools> pools_;
};

}  // namespace helios::model
