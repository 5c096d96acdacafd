#pragma once
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/clock.hpp"
#include "runtime/result.hpp"

namespace helios::runtime {

/// A ring of spans, written as Chrome/Perfetto JSON: actor messages, device copies and steps on one time line.
/// Full, it forgets the oldest. Thread-safe; a span costs one short lock.
class Tracer {
 public:
  using Track = std::uint32_t;

  explicit Tracer(std::size_t capacity = std::size_t{1} << 18);
  /// A named line of the picture, such as "stream/copy". The same name gives the same track.
  Track track(const std::string& name);
  /// `detail` becomes args.detail: "rows=16 layers=1-30".
  void complete(Track track, std::string_view name, TimePoint start, TimePoint end, std::string_view detail = {});
  void instant(Track track, std::string_view name, TimePoint at, std::string_view detail = {});
  std::size_t size() const;
  /// {"traceEvents": [...]}, microseconds from the first event. Errors: io_error.
  Result<void> write_chrome_json(const std::string& path) const;
  std::string chrome_json() const;

 private:
  struct Event {
    std::string name, detail;
    TimePoint start, end;
    Track track;
    bool instant;
  };
  void add(Event event);
  const std::size_t capacity_;
  mutable std::mutex mutex_;
  std::vector<Event> ring_;
  std::size_t next_ = 0;  // where the next one goes once the ring is full
  std::vector<std::string> tracks_;
};

}  // namespace helios::runtime
