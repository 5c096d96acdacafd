#pragma once
// The front door: admits, bounds, cancels, drains.

#include <memory>
#include <unordered_map>
#include <vector>

#include "actors/messages.hpp"
#include "actors/policy/admission.hpp"
#include "model/kv_cache.hpp"
#include "model/model_file.hpp"
#include "runtime/actor.hpp"
#include "runtime/metrics.hpp"

namespace helios::actors {

/// One model as Router sees it.
struct Route {
  std::string name;
  std::shared_ptr<const model::ModelFile> file;
  std::shared_ptr<const model::KvCache> cache;  // asked only what an empty cache could hold
  int first_depth = 0;
  std::string policy;
  runtime::Address<Admit, Cancel, SetDepth, GetModelStats> host;
};

struct RouterOptions {
  std::vector<Route> routes;  // the first one serves requests that name no model
  runtime::Address<PreparePrompt> worker;
  policy::AdmissionBounds bounds;
  runtime::Duration ask_deadline = std::chrono::seconds(30);
  gpu::Device* device = nullptr;
  runtime::Registry* metrics = nullptr;
};

class Router final : public runtime::Actor<Router, Submit, Cancel, SetDepth, GetStats, Drain, WaitReady,
                                           RequestDone, HostState> {
 public:
  explicit Router(RouterOptions options);
  ~Router();

  runtime::Task<> on(Submit msg);
  runtime::Task<> on(Cancel msg);
  runtime::Task<> on(SetDepth msg);
  runtime::Task<> on(GetStats msg);
  runtime::Task<> on(Drain msg);
  runtime::Task<> on(WaitReady msg);
  runtime::Task<> on(RequestDone msg);
  runtime::Task<> on(HostState msg);
  runtime::Task<> on_stop();

 private:
  struct Live {
    std::size_t route = 0;
    std::int64_t prompt_tokens = 0;
    bool cancelled = false;
  };
  struct Meters;

  runtime::Task<> admit(Submit msg, RequestId id, std::size_t route_index, runtime::TimePoint received);
  runtime::Task<> answer_stats(GetStats msg);
  runtime::Task<> drain(Drain msg);
  Result<std::size_t> route_of(const std::string& model) const;
  policy::Load load() const;
  void forget(RequestId id);
  void answer_ready();

  RouterOptions options_;
  std::unordered_map<RequestId, Live> live_;  // bounded by bounds.live_requests_max
  std::vector<HostState> states_;             // by route
  std::vector<runtime::Reply<Ready>> ready_waiters_;
  std::int64_t live_prompt_tokens_ = 0;
  RequestId next_id_ = 1;
  runtime::TimePoint started_;
  bool draining_ = false;
  int drained_finished_ = 0;
  int drained_cancelled_ = 0;
  std::unique_ptr<Meters> meters_;
};

}  // namespace helios::actors
