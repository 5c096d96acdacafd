#include "runtime/trace.hpp"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

namespace helios::runtime {

namespace {

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char buffer[8];
      std::snprintf(buffer, sizeof buffer, "\\u%04x", static_cast<unsigned>(c));
      out += buffer;
    } else {
      out += c;
    }
  }
  return out + '"';
}

std::string microseconds(Duration duration) {
  const auto ns = std::chrono::duration_cast<std::chrono::nanoseconds>(duration).count();
  char buffer[40];
  std::snprintf(buffer, sizeof buffer, "%.3f", static_cast<double>(ns) / 1000.0);
  return buffer;
}

}  // namespace

struct Tracer::Impl {
  struct Event {
    char phase = 'X';  // Chrome's letters: X complete, i instant, C counter
    TrackId track = 0;
    TimePoint start{};
    Duration length{};
    std::string name, args, category;
  };
  struct Track {
    std::string name;
    int group = 0;  // shown as a process
  };

  void add(Event event) {
    const std::lock_guard lock(mutex);
    if (ring.size() < capacity) {
      ring.push_back(std::move(event));
    } else {
      ring[next] = std::move(event);
      next = (next + 1) % capacity;
      ++dropped;
    }
  }

  std::size_t capacity = 0;
  std::function<TimePoint()> clock;
  mutable std::mutex mutex;
  std::vector<Event> ring;
  std::size_t next = 0;  // the oldest, once the ring is full
  std::uint64_t dropped = 0;
  std::vector<Track> tracks;
  std::vector<std::string> groups;
  std::map<std::string, TrackId, std::less<>> track_by_name;
};

Tracer::Tracer(std::size_t capacity, std::function<TimePoint()> clock) : impl_(std::make_unique<Impl>()) {
  impl_->capacity = std::max<std::size_t>(capacity, 1);
  impl_->clock = std::move(clock);
}
Tracer::~Tracer() = default;

TrackId Tracer::track(std::string_view name) {
  const std::lock_guard lock(impl_->mutex);
  if (const auto found = impl_->track_by_name.find(name); found != impl_->track_by_name.end())
    return found->second;
  const std::string group(name.substr(0, name.find('/')));
  auto at = std::find(impl_->groups.begin(), impl_->groups.end(), group);
  if (at == impl_->groups.end()) at = impl_->groups.insert(at, group);
  const auto id = static_cast<TrackId>(impl_->tracks.size());
  impl_->tracks.push_back({std::string(name), static_cast<int>(at - impl_->groups.begin())});
  impl_->track_by_name.emplace(name, id);
  return id;
}

void Tracer::complete(std::string_view name, TrackId track, TimePoint start, TimePoint end, std::string args,
                      std::string_view category) {
  impl_->add({'X', track, start, end - start, std::string(name), std::move(args), std::string(category)});
}

void Tracer::instant(std::string_view name, TrackId track, std::string args, std::string_view category) {
  impl_->add({'i', track, now(), {}, std::string(name), std::move(args), std::string(category)});
}

void Tracer::counter(std::string_view name, TrackId track, double value) {
  char args[48];
  std::snprintf(args, sizeof args, "\"value\":%.9g", value);
  impl_->add({'C', track, now(), {}, std::string(name), args, {}});
}

TimePoint Tracer::now() const {
  return impl_->clock();
}

std::size_t Tracer::events() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->ring.size();
}

std::uint64_t Tracer::dropped() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->dropped;
}

std::string Tracer::chrome_json() const {
  const std::lock_guard lock(impl_->mutex);
  const Impl& impl = *impl_;
  TimePoint origin = kNever;
  for (const Impl::Event& event : impl.ring) origin = std::min(origin, event.start);
  std::string out = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[";
  const char* separator = "\n";
  const auto begin = [&] {
    out += separator;
    separator = ",\n";
  };
  for (std::size_t i = 0; i < impl.groups.size(); ++i) {
    begin();
    out += R"({"ph":"M","name":"process_name","pid":)" + std::to_string(i + 1) + R"(,"args":{"name":)" +
           quoted(impl.groups[i]) + "}}";
  }
  for (std::size_t i = 0; i < impl.tracks.size(); ++i) {
    begin();
    out += R"({"ph":"M","name":"thread_name","pid":)" + std::to_string(impl.tracks[i].group + 1) +
           ",\"tid\":" + std::to_string(i + 1) + R"(,"args":{"name":)" + quoted(impl.tracks[i].name) + "}}";
  }
  for (std::size_t i = 0; i < impl.ring.size(); ++i) {
    const Impl::Event& event = impl.ring[(impl.next + i) % impl.ring.size()];
    const bool known = event.track >= 0 && static_cast<std::size_t>(event.track) < impl.tracks.size();
    const int group = known ? impl.tracks[static_cast<std::size_t>(event.track)].group : 0;
    const std::string category = !event.category.empty() ? event.category
                                 : known                 ? impl.groups[static_cast<std::size_t>(group)]
                                                         : "helios";
    begin();
    out += std::string("{\"ph\":\"") + event.phase + "\",\"name\":" + quoted(event.name) +
           ",\"cat\":" + quoted(category) + ",\"pid\":" + std::to_string(group + 1) +
           ",\"tid\":" + std::to_string(event.track + 1) + ",\"ts\":" + microseconds(event.start - origin);
    if (event.phase == 'X') out += ",\"dur\":" + microseconds(event.length);
    if (event.phase == 'i') out += ",\"s\":\"t\"";
    if (!event.args.empty()) out += ",\"args\":{" + event.args + "}";
    out += "}";
  }
  return out + "\n]}\n";
}

Result<void> Tracer::write_chrome_json(const std::string& path) const {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << chrome_json();
  file.close();
  if (!file)
    return fail(Errc::io_error, "cannot write the trace to " + path + ": check the folder and free space");
  return {};
}

}  // namespace helios::runtime
