#pragma once
// Every message between actors, as plain values. Sending moves them: sender and receiver share nothing, but
// for the step credit (RunStep -> StepReport): who holds it alone touches the sequences named in the plan.
//
// Asks go downwards (session -> Router -> ModelHost -> Scheduler, LayerLoader), upwards is tell, so waits
// form no ring.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "actors/request.hpp"
#include "actors/token_stream.hpp"
#include "model/transformer.hpp"
#include "model/weights.hpp"
#include "runtime/address.hpp"
#include "runtime/cancellation.hpp"
#include "runtime/clock.hpp"
#include "runtime/reply.hpp"
#include "runtime/result.hpp"

namespace helios::actors {

using RequestId = std::uint64_t;  // unique within the process, never 0

// ---------------------------------------------------------------------------------------------------------------
// Session -> Router: the public surface
// ---------------------------------------------------------------------------------------------------------------

struct Accepted {
  RequestId id = 0;
  int prompt_tokens = 0;
  std::vector<std::int32_t> prompt_ids;  // as the model reads them; only if the request asked for them
};

/// Ask. Refused: the error comes by `reply` and `stream` stays empty. Accepted: exactly one Finish ends
/// `stream`. Errors: bad_request, too_long, no_model, unsupported (a policy), busy, draining.
struct Submit {
  GenerateRequest request;
  std::shared_ptr<TokenStream> stream;
  runtime::Reply<Accepted> reply;
};

/// Tell. Ends the request with Finish{cancelled}; an unknown or finished id is a no-op.
struct Cancel {
  RequestId id = 0;
};

struct Depth {
  int resident = 0;  // layers 1..resident are on the device
};

/// Ask (the LOAD verb). Answered when layers 1..layer are resident and new tokens of unpinned requests may
/// use them. Shallower than now: answered at once, new sequences only; layers are freed when their last
/// sequence ends. Errors: no_model, bad_request, out_of_memory, io_error, bad_file, cancelled, draining.
struct SetDepth {
  std::string model;
  int layer = 0;
  runtime::Reply<Depth> reply;
};

/// Figures of one model at one moment.
struct ModelStats {
  std::string name;
  int layers = 0;    // L
  int depth = 0;     // exit layer of new unpinned tokens
  int resident = 0;  // layers on the device
  std::size_t weight_bytes = 0;
  std::size_t kv_bytes_used = 0, kv_bytes_total = 0;  // blocks of the paged cache
  std::int64_t blocks_used = 0, blocks_total = 0;
  int running = 0, waiting = 0;
  std::uint64_t steps = 0, prompt_tokens = 0, completion_tokens = 0, preemptions = 0;
  std::map<int, std::uint64_t> exit_histogram;
  double breach_rate = 0;             // over the current window
  std::vector<double> layer_load_ms;  // by layer, last load; 0 = never loaded
  bool synthetic = false;             // random weights: only size and speed mean anything
  std::string error;                  // why this model does not serve, "" when it does
};

struct Stats {
  std::vector<ModelStats> models;
  int live_requests = 0;
  std::int64_t live_prompt_tokens = 0;
  std::size_t device_bytes_used = 0, device_bytes_total = 0;
  bool draining = false;
  double uptime_s = 0;
};

struct GetStats {
  runtime::Reply<Stats> reply;
};

struct Drained {
  int finished = 0;   // requests that ended by themselves since Drain
  int cancelled = 0;  // requests ended by the deadline
};

/// Ask. No new requests; running ones may end until `deadline`, then they are cancelled. Answered when none
/// is left.
struct Drain {
  runtime::TimePoint deadline;
  runtime::Reply<Drained> reply;
};

struct Ready {
  std::vector<std::string> models;
};

/// Ask. Answered when every model holds its first depth; fails with the first load error.
struct WaitReady {
  runtime::Reply<Ready> reply;
};

/// What a session may say to Router.
using RouterAddress = runtime::Address<Submit, Cancel, SetDepth, GetStats, Drain, WaitReady>;

// ---------------------------------------------------------------------------------------------------------------
// Inside: Router and below
// ---------------------------------------------------------------------------------------------------------------

struct PreparedPrompt {
  std::vector<std::int32_t> ids;
};

/// Router -> PromptWorker, ask: template and tokenizer, off Router's strand.
/// Errors: bad_request (the template refused the turns, an id is outside the vocabulary), too_long.
struct PreparePrompt {
  std::shared_ptr<const model::ModelFile> file;
  std::variant<PromptText, ChatTurns, PromptIds> prompt;
  bool raw = false;
  runtime::Reply<PreparedPrompt> reply;
};

struct Admitted {
  int depth = 0;  // layers its tokens run at first
};

/// Router -> ModelHost, ask. The host chooses the depth and hands it to its Scheduler.
struct Admit {
  RequestId id = 0;
  std::vector<std::int32_t> prompt;
  model::Sampling sampling;
  std::optional<int> exit_layer;
  std::string policy;         // the request's or, when it named none, the model's
  bool policy_named = false;  // the request chose: it is pinned
  std::optional<float> min_confidence;
  std::string label;
  std::shared_ptr<TokenStream> stream;
  runtime::TimePoint received;  // when Router read Submit
  runtime::Reply<Admitted> reply;
};

/// ModelHost -> Scheduler. `follows`: its depth grows with the model's.
struct Enqueue {
  Admit admit;
  int depth = 0;
  bool follows = false;
};

/// ModelHost -> Router, tell: a change of what a model offers. `error` is set when it cannot serve any more.
struct HostState {
  std::string model;
  int depth = 0;
  int resident = 0;
  bool ready = false;
  std::optional<Error> error;
};

/// TextStream -> Router, tell: the request's stream has its Finish and its blocks are free.
struct RequestDone {
  RequestId id = 0;
};

/// Scheduler -> ModelHost, tell: the step credit goes down. The host runs the plan and answers with
/// StepReport.
struct RunStep {
  model::StepPlan plan;
  int layers_in_use =
      0;  // the deepest depth of any sequence; layers above it and above the target may be freed
};

/// ModelHost -> Scheduler, tell: the credit comes back. `results` has one entry per output of the plan.
struct StepReport {
  Result<void> status;
  std::vector<model::StepResult> results;
  runtime::Duration took{};
  bool device_lost = false;  // the step may still be running: its memory must not be used again
};

/// ModelHost -> Scheduler, tell. `depth`: target of sequences that follow; `resident`: layers that can run.
struct DepthChanged {
  int depth = 0;
  int resident = 0;
  std::optional<Error> error;  // nothing can run any more: queued and running requests end with it
};

/// Scheduler -> ModelHost, tell: no sequence is deeper than `layers_in_use` now (sent when no step follows).
struct LayersInUse {
  int layers_in_use = 0;
};

struct Reclaimed {
  int sequences = 0;  // preempted; 0 = nothing left to take
};

/// ModelHost -> Scheduler, ask: memory is needed for weights; the youngest sequence gives its blocks back and
/// will be prefilled again. Answered between steps.
struct Reclaim {
  runtime::Reply<Reclaimed> reply;
};

/// ModelHost -> Scheduler, ask.
struct SchedulerStats {
  int running = 0, waiting = 0;
  std::uint64_t steps = 0, prompt_tokens = 0, completion_tokens = 0, preemptions = 0;
  std::int64_t blocks_used = 0, blocks_total = 0;
};
struct GetSchedulerStats {
  runtime::Reply<SchedulerStats> reply;
};

/// Router -> ModelHost, ask.
struct GetModelStats {
  runtime::Reply<ModelStats> reply;
};

struct ProfilerStats {
  std::map<int, std::uint64_t> exit_histogram;
  double breach_rate = 0;
};
struct GetProfilerStats {
  runtime::Reply<ProfilerStats> reply;
};

/// Scheduler -> TextStream, tell: a request was accepted; its tokens follow.
struct OpenText {
  RequestId id = 0;
  std::shared_ptr<TokenStream> stream;
  model::Sampling sampling;
  int prompt_tokens = 0;
  runtime::TimePoint received;
  std::string label;
};

struct SampledToken {
  RequestId id = 0;
  TokenInfo info;
  bool stop_token = false;  // eos or a requested stop id: counted, not shown
  bool breach = false;
};

struct EndOfText {
  RequestId id = 0;
  FinishReason reason = FinishReason::error;
  std::optional<Error> error;
};

/// Scheduler -> TextStream, once a step: tokens in order, then the requests that ended and whose blocks are
/// free.
struct StepText {
  std::vector<SampledToken> tokens;
  std::vector<EndOfText> ends;
  runtime::TimePoint at;
};

/// TextStream -> Scheduler, tell: a stop string was completed, or the reader is gone or too slow. The stream
/// already has its Finish; the Scheduler frees the sequence and answers with EndOfText.
struct StopText {
  RequestId id = 0;
};

/// Scheduler -> Profiler, tell, once a step.
struct StepSummary {
  struct Token {
    int depth = 0;
    bool counts = false;  // may count as a breach: unpinned, below full depth, not deeper than resident
    bool breach = false;
  };
  std::vector<Token> tokens;
  int running = 0;
  runtime::Duration took{};
};

/// ModelHost -> Profiler, tell: a load or a drop is over.
struct DepthSettled {
  int depth = 0;
  runtime::Duration load_time{};
  bool failed = false;
};

/// Profiler -> ModelHost, tell: the breach counter tripped.
struct Deepen {
  int layer = 0;
};

struct LayersLoaded {
  int loaded_to = 0;           // layers [first, loaded_to) were sent, globals too when asked for
  bool globals = false;        // were sent
  std::optional<Error> error;  // why loaded_to < last
  runtime::Duration took{};
  std::size_t bytes = 0;
};

/// ModelHost -> LayerLoader, ask; layers [first, last), 0-based. Each comes as LayerReady before the answer.
/// The same range asked twice is loaded once. Errors: out_of_memory, io_error, bad_file, cancelled,
/// device_fault.
struct LoadLayers {
  int first = 0;
  int last = 0;
  bool globals = false;  // embedding, norms, heads too, before the first layer
  runtime::CancelToken cancel;
  runtime::Reply<LayersLoaded> reply;
};

/// LayerLoader -> ModelHost, tell.
struct LayerReady {
  int layer = 0;
  model::LayerWeights weights;
  runtime::Duration took{};
  std::size_t bytes = 0;  // of the file
};
struct GlobalsReady {
  model::GlobalWeights weights;
  runtime::Duration took{};
};

}  // namespace helios::actors
