#pragma once
// Who talks to whom below Router: one message each, sent once. They go down the way that the first messages
// go (host, then Scheduler, then text stage), because messages of one sender keep their order and those of
// two senders do not: nobody is spoken to before he is wired.

#include "actors/messages.hpp"

namespace helios::actors {

struct WireText {
  runtime::Address<StopText> scheduler;
  runtime::Address<RequestDone> router;
};

struct WireProfiler {
  runtime::Address<Deepen> host;
};

struct WireLoader {
  runtime::Address<LayerReady, GlobalsReady> host;
};

struct WireScheduler {
  runtime::Address<RunStep, LayersInUse> host;
  runtime::Address<WireText, OpenText, StepText> text;
  runtime::Address<StepSummary> profiler;
  WireText for_text;
};

/// Loading starts with it.
struct WireHost {
  runtime::Address<WireScheduler, Enqueue, Cancel, StepReport, DepthChanged, Reclaim, GetSchedulerStats>
      scheduler;
  runtime::Address<WireLoader, LoadLayers> loader;
  runtime::Address<WireProfiler, DepthSettled, GetProfilerStats> profiler;
  runtime::Address<HostState> router;
  WireScheduler for_scheduler;
  WireLoader for_loader;
  WireProfiler for_profiler;
};

}  // namespace helios::actors
