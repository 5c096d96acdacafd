#include "actors/layer_loader.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include "actors/metric_bounds.hpp"

#include <algorithm>

namespace helios::actors {

namespace {

constexpr std::size_t kFlightsMax = 16;

double seconds_of(runtime::Duration d) {
  return std::chrono::duration<double>(d).count();
}

}  // namespace

struct LayerLoader::Flight {
  int first = 0, last = 0;
  bool globals = false;
  runtime::CancelToken cancel;
  std::vector<runtime::Reply<LayersLoaded>> replies;
};

struct LayerLoader::Meters {
  runtime::Counter& layers;
  runtime::Counter& bytes;
  runtime::Counter& failures;
  runtime::Histogram& layer_seconds;
};

LayerLoader::LayerLoader(LayerLoaderOptions options) : options_(std::move(options)) {
  if (runtime::Registry* m = options_.metrics) {
    const runtime::Labels labels{{"model_name", options_.model_name}};
    meters_ = std::make_unique<Meters>(Meters{
        m->counter("helios_layers_loaded_total", labels, "Layers brought onto the device"),
        m->counter("helios_layer_bytes_loaded_total", labels, "Bytes of these layers in the file"),
        m->counter("helios_layer_load_failures_total", labels, "Loads that failed or were cancelled"),
        m->histogram("helios_layer_load_seconds", seconds_bounds(), labels, "Time of one layer's load")});
  }
}

LayerLoader::~LayerLoader() = default;

runtime::Task<> LayerLoader::on(WireLoader msg) {
  wire_ = std::move(msg);
  co_return;
}

runtime::Task<> LayerLoader::on(LoadLayers msg) {
  for (const auto& flight : flights_) {
    if (flight->first == msg.first && flight->last == msg.last && flight->globals == msg.globals &&
        !flight->cancel.cancelled()) {
      flight->replies.push_back(std::move(msg.reply));  // bounded: the host asks once per range
      co_return;
    }
  }
  if (flights_.size() >= kFlightsMax) {
    msg.reply.fail(fail(Errc::busy, fmt::format("{} loads are waiting; retry later", flights_.size())));
    co_return;
  }
  auto flight = std::make_shared<Flight>();
  flight->first = msg.first;
  flight->last = msg.last;
  flight->globals = msg.globals;
  flight->cancel = msg.cancel;
  flight->replies.push_back(std::move(msg.reply));
  flights_.push_back(flight);
  if (flights_.size() == 1) scope().spawn(fly(flight));
}

runtime::Task<> LayerLoader::on_stop() {
  // The flight in the air ends at its next piece: the scope's stop request reaches its copy.
  for (std::size_t i = 1; i < flights_.size(); ++i) {
    for (auto& reply : flights_[i]->replies) reply.fail(fail(Errc::draining, "the loader stopped"));
  }
  if (flights_.size() > 1) flights_.resize(1);
  co_await scope().join();  // a copy that runs writes into a slab that the flight owns
}

runtime::Task<> LayerLoader::fly(std::shared_ptr<Flight> flight) {
  while (flight != nullptr) {
    const LayersLoaded loaded = co_await load(flight);
    for (auto& reply : flight->replies) reply.send(loaded);
    if (loaded.error && meters_) meters_->failures.add(1);
    std::erase(flights_, flight);
    flight = flights_.empty() ? nullptr : flights_.front();
  }
}

runtime::Task<LayersLoaded> LayerLoader::load(std::shared_ptr<Flight> flight) {
  LayersLoaded total;
  total.loaded_to = flight->first;
  const runtime::TimePoint begin = now();
  auto ended = [&](std::optional<Error> error) {
    total.error = std::move(error);
    total.took = now() - begin;
    return total;
  };
  if (flight->globals) {
    auto started = model::start_load_globals(*options_.device, options_.file, flight->cancel);
    if (!started) co_return ended(started.error());
    const Result<void> done =
        co_await started->copy.event().completed(executor(), begin + options_.layer_deadline);
    if (!done) co_return ended(done.error());
    total.bytes += started->copy.bytes();
    GlobalsReady ready{std::move(started->weights), now() - begin};
    const Result<void> told = co_await wire_->host.send(std::move(ready));
    if (!told) co_return ended(told.error());
    total.globals = true;
  }
  for (int layer = flight->first; layer < flight->last; ++layer) {
    if (flight->cancel.cancelled()) {
      co_return ended(
          fail(Errc::cancelled, fmt::format("the load of layers {}-{} was cancelled after layer {}",
                                            flight->first + 1, flight->last, layer)));
    }
    const runtime::TimePoint start = now();
    auto started = model::start_load_layer(*options_.device, options_.file, layer, flight->cancel);
    if (!started) co_return ended(started.error());
    const Result<void> done =
        co_await started->copy.event().completed(executor(), start + options_.layer_deadline);
    if (!done) co_return ended(done.error());
    const runtime::TimePoint end = now();
    const std::size_t bytes = started->copy.bytes();
    total.bytes += bytes;
    if (meters_) {
      meters_->layers.add(1);
      meters_->bytes.add(bytes);
      meters_->layer_seconds.observe(seconds_of(end - start));
    }
    LayerReady ready{layer, std::move(started->weights), end - start, bytes};
    const Result<void> told = co_await wire_->host.send(std::move(ready));
    if (!told) co_return ended(told.error());
    total.loaded_to = layer + 1;
  }
  co_return ended(std::nullopt);
}

}  // namespace helios::actors
