#pragma once
// Brings layer weights onto the device on the copy stream, while steps go on.

#include <memory>
#include <vector>

#include "actors/wiring.hpp"
#include "gpu/device.hpp"
#include "model/model_file.hpp"
#include "runtime/actor.hpp"
#include "runtime/metrics.hpp"
#include "runtime/trace.hpp"

namespace helios::actors {

struct LayerLoaderOptions {
  std::string model_name;
  std::shared_ptr<const model::ModelFile> file;
  gpu::Device* device = nullptr;                      // outlives the actor
  std::chrono::milliseconds layer_deadline{120'000};  // one layer's copy
  runtime::Registry* metrics = nullptr;
  runtime::Tracer* tracer = nullptr;
};

/// Only loads: the host holds what is loaded. One range at a time, layer by layer, so that a layer can run as
/// soon as it is here; a range asked for again while it loads is answered together with the first ask.
class LayerLoader final : public runtime::Actor<LayerLoader, WireLoader, LoadLayers> {
 public:
  explicit LayerLoader(LayerLoaderOptions options);
  ~LayerLoader();

  runtime::Task<> on(WireLoader msg);
  runtime::Task<> on(LoadLayers msg);
  runtime::Task<> on_stop();

 private:
  struct Flight;
  struct Meters;
  runtime::Task<> fly(std::shared_ptr<Flight> flight);
  runtime::Task<LayersLoaded> load(std::shared_ptr<Flight> flight);

  LayerLoaderOptions options_;
  std::optional<WireLoader> wire_;
  std::vector<std::shared_ptr<Flight>> flights_;  // the first one is in the air, the others wait their turn
  std::unique_ptr<Meters> meters_;
};

}  // namespace helios::actors
