#include "model/weights.hpp"

#include <fmt/format.h>

#include <cstring>
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
  Placement(const gpu::Device& device, std::byte* base) : device_(device), base_(base) {}

  gpu::Matrix matrix(const GgufTensor& t) {
    std::byte* place = take(device_.packed_bytes(t.type, t.rows(), t.cols()));
    pieces_.push_back({t.file_offset, t.bytes, t.type, t.rows(), t.cols(), place, false});
    return device_.matrix_view(t.type, t.rows(), t.cols(), place);
  }
  const float* vector(const GgufTensor& t) {
    std::byte* place = take(static_cast<std::size_t>(t.cols()) * sizeof(float));
    pieces_.push_back({t.file_offset, t.bytes, t.type, 1, t.cols(), place, true});
    return reinterpret_cast<const float*>(place);
  }
  std::size_t bytes() const { return used_; }
  std::vector<gpu::LoadPiece>& pieces() { return pieces_; }

 private:
  std::byte* take(std::size_t bytes) {
    std::byte* place = base_ == nullptr ? nullptr : base_ + used_;
    used_ += aligned(bytes);
    return place;
  }
  const gpu::Device& device_;
  std::byte* base_;
  std::size_t used_ = 0;
  std::vector<gpu::LoadPiece> pieces_;
};

void place_layer(Placement& place, const LayerTensors& t, LayerWeights& w) {
  w.attention_norm = place.vector(*t.attention_norm);
  w.q = place.matrix(*t.q);
  w.k = place.matrix(*t.k);
  w.v = place.matrix(*t.v);
  w.o = place.matrix(*t.o);
  w.feed_forward_norm = place.vector(*t.feed_forward_norm);
  w.gate = place.matrix(*t.gate);
  w.up = place.matrix(*t.up);
  w.down = place.matrix(*t.down);
}

void place_globals(Placement& place, const GgufFile& file, GlobalWeights& w) {
  w.embedding = place.matrix(*file.find("token_embd.weight"));
  w.norm = place.vector(*file.find("output_norm.weight"));
  const GgufTensor* head = file.find("output.weight");
  w.head = head != nullptr ? place.matrix(*head) : w.embedding;
}

Result<gpu::Copy> start_copy(gpu::Device& device, const ModelFile& file, Placement& place,
                             runtime::CancelToken cancel, std::string label) {
  gpu::LoadRequest request;
  request.file = file.reader();
  request.pieces = std::move(place.pieces());
  request.cancel = std::move(cancel);
  request.label = std::move(label);
  return device.copy_engine().start(std::move(request));
}

}  // namespace

std::size_t layer_device_bytes(const gpu::Device& device, const ModelFile& file, int layer) {
  Placement count(device, nullptr);
  LayerWeights ignored;
  place_layer(count, file.layer(layer), ignored);
  return count.bytes();
}

std::size_t global_device_bytes(const gpu::Device& device, const ModelFile& file) {
  Placement count(device, nullptr);
  GlobalWeights ignored;
  place_globals(count, file.gguf(), ignored);
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
  Placement place(device, weights.slab.data());
  place_layer(place, file->layer(layer), weights);
  Result<gpu::Copy> copy =
      start_copy(device, *file, place, std::move(cancel), fmt::format("layer {}", layer + 1));
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
  Placement count(device, nullptr);
  place_globals(count, file->gguf(), weights);
  Result<gpu::Slab> slab = device.budget().reserve(count.bytes(), gpu::Use::weights);
  if (!slab) return slab.error();
  weights.slab = std::move(*slab);
  Placement place(device, weights.slab.data());
  place_globals(place, file->gguf(), weights);
  Result<gpu::Copy> copy = start_copy(device, *file, place, std::move(cancel), "globals");
  if (!copy) return copy.error();
  return GlobalLoad{std::move(weights), std::move(*copy)};
}

}  // namespace helios::model
