#pragma once
// What happened when, on one time line: a ring of events, written as Chrome/Perfetto JSON.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "runtime/clock.hpp"
#include "runtime/result.hpp"

namespace helios::runtime {

using TrackId = int;

/// Thread-safe. Keeps the newest `capacity` events. Passed by pointer; null means off.
class Tracer {
 public:
  static constexpr std::size_t kDefaultCapacity = 1 << 17;

  /// `clock`: under simulation the executor's now.
  explicit Tracer(std::size_t capacity = kDefaultCapacity, std::function<TimePoint()> clock = Clock::now);
  ~Tracer();
  Tracer(const Tracer&) = delete;
  Tracer& operator=(const Tracer&) = delete;

  /// The track of that name ("actor/Scheduler", "stream/copy"), made when new. The part before '/' groups
  /// tracks.
  TrackId track(std::string_view name);
  /// `args`: the inside of a JSON object, as `"layer":3,"bytes":1024`; "" = none.
  void complete(std::string_view name, TrackId track, TimePoint start, TimePoint end, std::string args = {},
                std::string_view category = {});
  void instant(std::string_view name, TrackId track, std::string args = {}, std::string_view category = {});
  /// A line of values over time.
  void counter(std::string_view name, TrackId track, double value);
  TimePoint now() const;

  std::size_t events() const;       // in the ring
  std::uint64_t dropped() const;    // overwritten
  std::string chrome_json() const;  // times in microseconds since the first event kept
  Result<void> write_chrome_json(const std::string& path) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// From construction to destruction, on one track. A null tracer costs one test.
class TraceSpan {
 public:
  TraceSpan(Tracer* tracer, std::string_view category, std::string_view name, TrackId track)
      : tracer_(tracer), track_(track) {
    if (tracer_ == nullptr) return;
    category_ = category;
    name_ = name;
    start_ = tracer_->now();
  }
  ~TraceSpan() {
    if (tracer_ != nullptr)
      tracer_->complete(name_, track_, start_, tracer_->now(), std::move(args_), category_);
  }
  TraceSpan(const TraceSpan&) = delete;
  TraceSpan& operator=(const TraceSpan&) = delete;
  /// As Tracer::complete's.
  void args(std::string args) { args_ = std::move(args); }

 private:
  Tracer* tracer_;
  TrackId track_;
  std::string category_, name_, args_;
  TimePoint start_{};
};

}  // namespace helios::runtime
