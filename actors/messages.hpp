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

}  // namespace helios::actors
