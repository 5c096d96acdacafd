#include "model/weights.hpp"

#include <fmt/format.h>

#include <cstring>
#include <initializer_list>
#include <utility>

#include "model/exit_weights.hpp"

namespace helios::model {

namespace {

constexpr std::size_t aligned(std::size_t bytes) {
  return (bytes + 63) & ~std::size_t{63};
}

/// Places tensors one after another in a slab: first a pass that counts, then one that hands out.
class Placement {
 public:
  Placement(const gpu::Device& device, const Checkpoint& checkpoint, std::byte* base)
      : device_(device), checkpoint_(checkpoint), base_(base) {}

  gpu::Matrix matrix(const StoredTensor* t) {
    if (t == nullptr) return {};
    std::byte* place = take(device_.packed_bytes(t->held, t->rows(), t->cols()));
    gpu::LoadPiece piece = piece_of(*t, place);
    if (t->held != t->type) piece.quantise_to = t->held;
    pieces_.push_back(std::move(piece));
    return device_.matrix_view(t->held, t->rows(), t->cols(), place);
  }
  /// Tensors as floats, row-major, end to end; null when the first is absent.
  const float* floats(std::initializer_list<const StoredTensor*> tensors) {
    if (*tensors.begin() == nullptr) return nullptr;
    std::size_t count = 0;
    for (const StoredTensor* t : tensors) count += static_cast<std::size_t>(t->rows() * t->cols());
    std::byte* place = take(count * sizeof(float));
    const auto* first = reinterpret_cast<const float*>(place);
    for (const StoredTensor* t : tensors) {
      gpu::LoadPiece piece = piece_of(*t, place);
      piece.raw = true;
      pieces_.push_back(std::move(piece));
      if (place != nullptr) place += static_cast<std::size_t>(t->rows() * t->cols()) * sizeof(float);
    }
    return first;
  }
  const float* floats(const StoredTensor* t) { return floats({t}); }
  /// Values of the configuration's; null when there are none. Written at once: the device is host-visible.
  const float* values(const std::vector<float>& from) {
    if (from.empty()) return nullptr;
    std::byte* place = take(from.size() * sizeof(float));
    if (place != nullptr) std::memcpy(place, from.data(), from.size() * sizeof(float));
    return reinterpret_cast<const float*>(place);
  }
  std::size_t bytes() const { return used_; }
  std::vector<gpu::LoadPiece>& pieces() { return pieces_; }

 private:
  gpu::LoadPiece piece_of(const StoredTensor& t, std::byte* place) const {
    return {.file_offset = t.file_offset,
            .file_bytes = t.bytes,
            .type = t.type,
            .rows = t.rows(),
            .cols = t.cols(),
            .destination = place,
            .file = checkpoint_.reader(t)};
  }
  std::byte* take(std::size_t bytes) {
    std::byte* place = base_ == nullptr ? nullptr : base_ + used_;
    used_ += aligned(bytes);
    return place;
  }
  const gpu::Device& device_;
  const Checkpoint& checkpoint_;
  std::byte* base_;
  std::size_t used_ = 0;
  std::vector<gpu::LoadPiece> pieces_;
};

void place_layer(Placement& place, const LayerTensors& t, LayerWeights& w) {
  w.attention_norm = place.floats(t.attention_norm);
  w.attention_norm_bias = place.floats(t.attention_norm_bias);
  w.q = place.matrix(t.q);
  w.k = place.matrix(t.k);
  w.v = place.matrix(t.v);
  w.qkv_bias = place.floats({t.q_bias, t.k_bias, t.v_bias});
  w.o = place.matrix(t.o);
  w.o_bias = place.floats(t.o_bias);
  w.feed_forward_norm = place.floats(t.feed_forward_norm);
  w.feed_forward_norm_bias = place.floats(t.feed_forward_norm_bias);
  w.gate = place.matrix(t.gate);
  w.gate_bias = place.floats(t.gate_bias);
  w.up = place.matrix(t.up);
  w.up_bias = place.floats(t.up_bias);
  w.down = place.matrix(t.down);
  w.down_bias = place.floats(t.down_bias);
}

void place_globals(Placement& place, const ModelFile& file, GlobalWeights& w) {
  const GlobalTensors& t = file.globals();
  w.embedding = place.matrix(t.embedding);
  w.positions = place.floats(t.positions);
  w.position_rows = t.positions != nullptr ? t.positions->rows() : 0;
  w.rope_factors = place.values(file.config().rope_factors);
  w.norm = place.floats(t.norm);
  w.norm_bias = place.floats(t.norm_bias);
  w.head = t.head != nullptr ? place.matrix(t.head) : w.embedding;
}

Result<gpu::Copy> start_copy(gpu::Device& device, Placement& place, runtime::CancelToken cancel,
                             std::string label) {
  gpu::LoadRequest request;
  request.pieces = std::move(place.pieces());
  request.cancel = std::move(cancel);
  request.label = std::move(label);
  return device.copy_engine().start(std::move(request));
}

}  // namespace

std::size_t layer_device_bytes(const gpu::Device& device, const ModelFile& file, int layer) {
  Placement count(device, file.checkpoint(), nullptr);
  LayerWeights ignored;
  place_layer(count, file.layer(layer), ignored);
  return count.bytes();
}

std::size_t global_device_bytes(const gpu::Device& device, const ModelFile& file) {
  Placement count(device, file.checkpoint(), nullptr);
  GlobalWeights ignored;
  place_globals(count, file, ignored);
  std::size_t bytes = count.bytes();
  if (file.exits() != nullptr) {
    for (const ExitHead& head : file.exits()->heads()) bytes += exit_device_bytes(device, file, head);
  }
  return bytes;
}

Result<LayerLoad> start_load_layer(gpu::Device& device, const std::shared_ptr<const ModelFile>& file,
                                   int layer, runtime::CancelToken cancel) {
  if (layer < 0 || layer >= file->config().layers) {
    return fail(Errc::bad_request,
                fmt::format("layer {} is outside 1..{}", layer + 1, file->config().layers));
  }
  Result<gpu::Slab> slab =
      device.budget().reserve(layer_device_bytes(device, *file, layer), gpu::Use::weights);
  if (!slab) return slab.error();
  LayerWeights weights;
  weights.slab = std::move(*slab);
  Placement place(device, file->checkpoint(), weights.slab.data());
  place_layer(place, file->layer(layer), weights);
  Result<gpu::Copy> copy = start_copy(device, place, std::move(cancel), fmt::format("layer {}", layer + 1));
  if (!copy) return copy.error();
  return LayerLoad{std::move(weights), std::move(*copy)};
}

Result<GlobalLoad> start_load_globals(gpu::Device& device, const std::shared_ptr<const ModelFile>& file,
                                      runtime::CancelToken cancel) {
  GlobalWeights weights;
  if (file->exits() != nullptr) {
    for (const ExitHead& head : file->exits()->heads()) {
      Result<ExitWeights> exit = load_exit(device, *file, head);
      if (!exit) return exit.error();
      weights.exits.push_back(std::move(*exit));
    }
  }
  Placement count(device, file->checkpoint(), nullptr);
  place_globals(count, *file, weights);
  Result<gpu::Slab> slab = device.budget().reserve(count.bytes(), gpu::Use::weights);
  if (!slab) return slab.error();
  weights.slab = std::move(*slab);
  Placement place(device, file->checkpoint(), weights.slab.data());
  place_globals(place, *file, weights);
  Result<gpu::Copy> copy = start_copy(device, place, std::move(cancel), "globals");
  if (!copy) return copy.error();
  return GlobalLoad{std::move(weights), std::move(*copy)};
}

}  // namespace helios::model
