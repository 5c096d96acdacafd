#pragma once
// Continuous batching: which rows of which sequences run in the next step.

#include <deque>
#include <list>
#include <memory>
#include <vector>

#include "actors/policy/step_composer.hpp"
#include "actors/policy/step_time_model.hpp"
#include "actors/wiring.hpp"
#include "model/kv_cache.hpp"
#include "model/model_file.hpp"
#include "runtime/actor.hpp"
#include "runtime/metrics.hpp"
#include "runtime/trace.hpp"

namespace helios::actors {

struct SchedulerOptions {
  std::string model_name;
  std::shared_ptr<const model::ModelFile> file;
  int max_running = 32;
  int rows_max = 256;
  double stretch_max = 2.0;
  float confidence_threshold = 0.8F;
  bool keep_rows = true;  // residual rows are stored: deepen by catch-up; else by prefill from ids
  runtime::Registry* metrics = nullptr;
  runtime::Tracer* tracer = nullptr;
};

/// Holds the step credit while no step runs: only then are sequences and their blocks touched. Between
/// RunStep and StepReport a cancel is noted, and acted on when the credit is back, so blocks are free by the
/// next step.
class Scheduler final : public runtime::Actor<Scheduler, WireScheduler, Enqueue, Cancel, StopText, StepReport,
                                              DepthChanged, Reclaim, GetSchedulerStats> {
 public:
  Scheduler(SchedulerOptions options, std::shared_ptr<model::KvCache> cache);
  ~Scheduler();

  runtime::Task<> on(WireScheduler msg);
  runtime::Task<> on(Enqueue msg);
  runtime::Task<> on(Cancel msg);
  runtime::Task<> on(StopText msg);
  runtime::Task<> on(StepReport msg);
  runtime::Task<> on(DepthChanged msg);
  runtime::Task<> on(Reclaim msg);
  runtime::Task<> on(GetSchedulerStats msg);
  runtime::Task<> on_stop();

 private:
  struct Request;
  struct InFlight;
  struct Meters;

  /// Runs the next step if the credit is here and there is work.
  runtime::Task<> pump();
  void end(Request& request, FinishReason reason, std::optional<Error> error = std::nullopt);
  void request_end(RequestId id, FinishReason reason);
  void sweep_ended();
  void admit_waiting();
  void follow_depth();
  bool reserve_rows();
  bool preempt_youngest(const Request* keep);
  void preempt(Request& request);
  void restart(Request& request, int depth);
  void take_results(StepReport& report);
  RunStep build_plan(const policy::ComposedStep& step);
  int layers_in_use() const;
  runtime::Task<> flush_text();

  SchedulerOptions options_;
  std::shared_ptr<model::KvCache> cache_;
  std::optional<WireScheduler> wire_;

  std::deque<std::unique_ptr<Request>> waiting_;   // bounded by Router's live requests
  std::vector<std::unique_ptr<Request>> running_;  // oldest first
  std::vector<InFlight> in_flight_;                // of the step that runs now
  std::vector<std::unique_ptr<Request>>
      graveyard_;  // sequences of a step that may never end: their memory stays
  std::deque<runtime::Reply<Reclaimed>> reclaims_;

  policy::StepTimeModel time_model_;
  policy::StepWork step_work_;
  double step_bound_seconds_ = 0;  // 0: no decode rows, or nothing to predict with
  StepText text_;
  bool credit_ = true;
  bool stopped_ = false;
  int depth_ = 0;
  int resident_ = 0;
  int starved_steps_ = 0;
  int reported_in_use_ = 0;
  std::optional<Error> broken_;
  std::uint64_t next_order_ = 1;
  SchedulerStats stats_;
  std::unique_ptr<Meters> meters_;
};

}  // namespace helios::actors
