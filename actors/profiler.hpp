#pragma once
// Watches confidence and decides to deepen.

#include <map>
#include <memory>
#include <vector>

#include "actors/policy/breach_window.hpp"
#include "actors/policy/residency.hpp"
#include "actors/wiring.hpp"
#include "runtime/actor.hpp"
#include "runtime/metrics.hpp"

namespace helios::actors {

struct ProfilerOptions {
  std::string model_name;
  int layers = 0;           // L
  std::vector<int> exits;   // ascending; empty = only L follows
  int breach_window = 100;  // tokens
  double breach_max = 0.5;  // share
  policy::Residency residency;
  bool adaptive = true;
  runtime::Registry* metrics = nullptr;
};

/// One model's counters: exit histogram, breach window, time between decisions. With one model, a breach
/// means: load to the next exit. It decides; the host acts and reports with DepthSettled.
class Profiler final
    : public runtime::Actor<Profiler, WireProfiler, StepSummary, DepthSettled, GetProfilerStats> {
 public:
  explicit Profiler(ProfilerOptions options);
  ~Profiler();

  runtime::Task<> on(WireProfiler msg);
  runtime::Task<> on(StepSummary msg);
  runtime::Task<> on(DepthSettled msg);
  runtime::Task<> on(GetProfilerStats msg);

 private:
  struct Meters;

  ProfilerOptions options_;
  std::optional<WireProfiler> wire_;
  policy::BreachWindow window_;
  std::map<int, std::uint64_t> exit_histogram_;
  int depth_ = 0;
  bool deciding_ = false;  // a Deepen is on its way
  std::uint64_t tokens_since_ = 0;
  runtime::TimePoint decided_at_{};
  runtime::Duration last_load_time_{};
  std::unique_ptr<Meters> meters_;
};

}  // namespace helios::actors
