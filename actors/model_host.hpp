#pragma once
// One resident model: its layers on the device, its depth, and the step that runs now.

#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "actors/wiring.hpp"
#include "gpu/device.hpp"
#include "model/kv_cache.hpp"
#include "model/model_file.hpp"
#include "model/transformer.hpp"
#include "runtime/actor.hpp"
#include "runtime/metrics.hpp"
#include "runtime/trace.hpp"

namespace helios::actors {

struct ModelHostOptions {
  std::string model_name;
  std::shared_ptr<const model::ModelFile> file;
  gpu::Device* device = nullptr;  // outlives the actor
  int exit_layer = 0;             // layers held at start, 1..L
  std::string policy;             // of requests that name none; "": greedy below full depth, else full
  std::chrono::milliseconds step_deadline{120'000};
  runtime::Duration ask_deadline = std::chrono::seconds(30);
  runtime::Registry* metrics = nullptr;
  runtime::Tracer* tracer = nullptr;
};

/// Owns the Transformer. One step is in flight at most; layers are adopted and dropped between steps only.
/// Deepening keeps serving: sequences catch up and move by themselves once the last new layer is here.
class ModelHost final : public runtime::Actor<ModelHost, WireHost, Admit, Cancel, SetDepth, Deepen, RunStep,
                                              LayersInUse, LayerReady, GlobalsReady, GetModelStats> {
 public:
  ModelHost(ModelHostOptions options, std::unique_ptr<model::Transformer> transformer);
  ~ModelHost();

  runtime::Task<> on(WireHost msg);
  runtime::Task<> on(Admit msg);
  runtime::Task<> on(Cancel msg);
  runtime::Task<> on(SetDepth msg);
  runtime::Task<> on(Deepen msg);
  runtime::Task<> on(RunStep msg);
  runtime::Task<> on(LayersInUse msg);
  runtime::Task<> on(LayerReady msg);
  runtime::Task<> on(GlobalsReady msg);
  runtime::Task<> on(GetModelStats msg);
  runtime::Task<> on_stop();

 private:
  struct DepthWaiter {
    int layer = 0;
    runtime::Reply<Depth> reply;
  };

  runtime::Task<> run_step(RunStep msg);
  runtime::Task<> load_to_wanted();
  runtime::Task<> answer_stats(GetModelStats msg);
  Result<void> check_depth(int layer) const;
  void want_depth(int layer);
  void adopt_arrived();
  void drop_unused();
  void settle();
  void load_failed(const Error& error);
  void tell_depth();
  void tell_router();
  int resident() const;

  ModelHostOptions options_;
  std::unique_ptr<model::Transformer> transformer_;
  std::optional<WireHost> wire_;

  int depth_ = 0;     // where unpinned tokens leave
  int wanted_ = 0;    // > depth_ while deepening
  int promised_ = 0;  // layers resident, or sent by the loader and in our mailbox
  int in_use_ = 0;    // deepest layer of any sequence
  bool globals_promised_ = false;
  bool globals_here_ = false;
  bool ready_ = false;
  bool stepping_ = false;
  bool loading_ = false;
  bool stopping_ = false;
  std::optional<Error> broken_;
  std::optional<Error> load_error_;
  std::optional<GlobalsReady> arrived_globals_;
  std::deque<LayerReady> arrived_;  // waits for the end of the step; at most L
  runtime::CancelSource load_cancel_;
  runtime::TimePoint load_started_{};
  std::vector<DepthWaiter> waiters_;
  std::vector<double> layer_load_ms_;
  std::vector<std::size_t> layer_bytes_;
  std::uint64_t steps_ = 0;
  runtime::TrackId trace_track_ = 0;
};

}  // namespace helios::actors
