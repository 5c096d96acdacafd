#include "gpu/host_copy_engine.hpp"

#include "gpu/host_stream.hpp"
#include "runtime/trace.hpp"

namespace helios::gpu {

HostCopyEngine::HostCopyEngine(runtime::Tracer* tracer, int nice)
    : tracer_(tracer), staging_(kCopyPieceBytes), thread_([this, nice] { loop(nice); }) {}

HostCopyEngine::~HostCopyEngine() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
  for (const Job& job : jobs_) job.event.complete(fail(Errc::dropped, "the copy engine was closed"));
}

Result<Copy> HostCopyEngine::start(LoadRequest request) {
  if (Result<void> ok = validate(request); !ok) return ok.error();
  std::size_t bytes = 0;
  for (const LoadPiece& piece : request.pieces) bytes += static_cast<std::size_t>(piece.file_bytes);
  Job job{std::move(request), Event()};
  Copy copy(job.event, bytes);
  {
    const std::lock_guard lock(mutex_);
    if (jobs_.size() >= kMaxQueued) return fail(Errc::busy, "the copy engine's queue is full");
    jobs_.push_back(std::move(job));
  }
  changed_.notify_all();
  return copy;
}

bool HostCopyEngine::stopping() {
  const std::lock_guard lock(mutex_);
  return stop_;
}

void HostCopyEngine::loop(int nice) {
  lower_priority(nice);
  if (tracer_ != nullptr) track_ = tracer_->track("stream/copy");
  for (;;) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return stop_ || !jobs_.empty(); });
    if (stop_) return;
    const Job job = std::move(jobs_.front());
    jobs_.pop_front();
    lock.unlock();
    job.event.complete(run(job.request));
  }
}

Result<void> HostCopyEngine::run(const LoadRequest& request) {
  const runtime::TraceSpan span(tracer_, "device", request.label, track_);
  const std::vector<LoadPart> parts = split(request);
  if (staging_bytes(parts) > staging_.size()) staging_.resize(staging_bytes(parts));
  std::size_t done = 0;
  for (const LoadPart& part : parts) {
    if (request.cancel.cancelled()) return fail(Errc::cancelled, request.label + ": the load was cancelled");
    if (stopping()) return fail(Errc::dropped, request.label + ": the copy engine was closed");
    if (Result<void> loaded = load_part(part, staging_); !loaded) return loaded;
    done += static_cast<std::size_t>(part.piece.file_bytes);
    if (request.progress) request.progress(done);
  }
  return {};
}

}  // namespace helios::gpu
