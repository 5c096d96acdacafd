#pragma once
// Weights on a device, by layer, so that layers come and go one at a time.

#include <memory>
#include <optional>
#include <vector>

#include "gpu/copy_engine.hpp"
#include "gpu/device.hpp"
#include "model/model_file.hpp"
#include "runtime/cancellation.hpp"
#include "runtime/result.hpp"

namespace helios::model {

/// One transformer layer; the matrices and vectors point into `slab`. Move-only.
struct LayerWeights {
  gpu::Slab slab;
  const float* attention_norm = nullptr;       // [hidden]
  const float* attention_norm_bias = nullptr;  // [hidden]; this and all biases: null without
  gpu::Matrix q, k, v, o;
  const float* qkv_bias = nullptr;                // [q + 2 kv], one after another as the products stand
  const float* o_bias = nullptr;                  // [hidden]
  const float* feed_forward_norm = nullptr;       // [hidden]
  const float* feed_forward_norm_bias = nullptr;  // [hidden]
  gpu::Matrix gate, up, down;                     // gate: empty without
  const float* gate_bias = nullptr;               // [feed_forward]
  const float* up_bias = nullptr;                 // [feed_forward]
  const float* down_bias = nullptr;               // [hidden]
};

/// One exit's own parts. Absent ones are null / empty matrices.
struct ExitWeights {
  int layer = 0;
  gpu::Slab slab;  // of all but the block
  gpu::Matrix adapter;
  const float* adapter_bias = nullptr;
  const float* norm = nullptr;
  const float* norm_bias = nullptr;
  gpu::Matrix head;
  std::optional<LayerWeights> block;  // q and k in GGUF's row order; LoRA deltas are merged

  bool has_adapter() const noexcept { return adapter.data != nullptr; }
};

/// What every depth needs: embedding, last norm, head, and the exits' heads.
struct GlobalWeights {
  gpu::Slab slab;
  gpu::Matrix embedding;
  const float* positions = nullptr;  // [position_rows, hidden]; null without learned positions
  std::int64_t position_rows = 0;
  const float* rope_factors = nullptr;  // [rope_dims / 2]; null: all 1
  const float* norm = nullptr;
  const float* norm_bias = nullptr;
  gpu::Matrix head;  // = embedding when tied
  std::vector<ExitWeights> exits;
};

/// Weights whose bytes arrive until `copy` is done; must stay alive until then, and may be used after.
struct LayerLoad {
  LayerWeights weights;
  gpu::Copy copy;
};
struct GlobalLoad {
  GlobalWeights weights;
  gpu::Copy copy;
};

/// Reserves the device bytes and starts the copy; reads only this layer's bytes. layer: 0-based.
/// The caller keeps the result until the copy's event is done, whatever happens.
/// Errors: out_of_memory (nothing reserved), busy (too many copies), bad_request. Faults of reading come by
/// the event.
Result<LayerLoad> start_load_layer(gpu::Device& device, const std::shared_ptr<const ModelFile>& file,
                                   int layer, runtime::CancelToken cancel = {});
/// As above, for embedding, norm and head; the exits' small parts are read at once, before it returns.
Result<GlobalLoad> start_load_globals(gpu::Device& device, const std::shared_ptr<const ModelFile>& file,
                                      runtime::CancelToken cancel = {});

/// Device bytes of one layer and of the globals (exits included), to the byte as they are reserved.
std::size_t layer_device_bytes(const gpu::Device& device, const ModelFile& file, int layer);
std::size_t global_device_bytes(const gpu::Device& device, const ModelFile& file);

}  // namespace helios::model
