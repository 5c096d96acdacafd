#include "runtime/trace.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cstdio>
#include <utility>

namespace helios::runtime {

namespace {

std::string json_string(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      out += c;
    }
  }
  return out + '"';
}

}  // namespace

Tracer::Tracer(std::size_t capacity) : capacity_(std::max<std::size_t>(1, capacity)) {}

Tracer::Track Tracer::track(const std::string& name) {
  const std::lock_guard lock(mutex_);
  const auto found = std::find(tracks_.begin(), tracks_.end(), name);
  if (found != tracks_.end()) return static_cast<Track>(found - tracks_.begin());
  tracks_.push_back(name);
  return static_cast<Track>(tracks_.size() - 1);
}

void Tracer::add(Event event) {
  const std::lock_guard lock(mutex_);
  if (ring_.size() < capacity_) {
    ring_.push_back(std::move(event));
    return;
  }
  ring_[next_] = std::move(event);
  next_ = (next_ + 1) % capacity_;
}

void Tracer::complete(Track track, std::string_view name, TimePoint start, TimePoint end, std::string_view detail) {
  add({std::string(name), std::string(detail), start, end, track, false});
}

void Tracer::instant(Track track, std::string_view name, TimePoint at, std::string_view detail) {
  add({std::string(name), std::string(detail), at, at, track, true});
}

std::size_t Tracer::size() const {
  const std::lock_guard lock(mutex_);
  return ring_.size();
}

std::string Tracer::chrome_json() const {
  const std::lock_guard lock(mutex_);
  TimePoint origin = TimePoint::max();
  for (const Event& e : ring_) origin = std::min(origin, e.start);
  const auto micros = [](Duration d) { return std::chrono::duration<double, std::micro>(d).count(); };
  std::string out = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n";
  for (std::size_t i = 0; i < tracks_.size(); ++i) {
    out += fmt::format(R"({{"ph":"M","pid":1,"tid":{},"name":"thread_name","args":{{"name":{}}}}},)", i, json_string(tracks_[i]));
    out += '\n';
  }
  for (std::size_t i = 0; i < ring_.size(); ++i) {
    const Event& e = ring_[(next_ + i) % ring_.size()];
    out += fmt::format(R"({{"ph":"{}","pid":1,"tid":{},"name":{},"ts":{:.3f})", e.instant ? "i" : "X", e.track,
                       json_string(e.name), micros(e.start - origin));
    if (!e.instant) out += fmt::format(",\"dur\":{:.3f}", micros(e.end - e.start));
    if (!e.detail.empty()) out += fmt::format(",\"args\":{{\"detail\":{}}}", json_string(e.detail));
    out += "},\n";
  }
  out += R"({"ph":"M","pid":1,"name":"process_name","args":{"name":"helios"}}]})";
  return out;
}

Result<void> Tracer::write_chrome_json(const std::string& path) const {
  std::FILE* file = std::fopen(path.c_str(), "wb");
  if (file == nullptr) return fail(Errc::io_error, "cannot write the trace to " + path);
  const std::string text = chrome_json();
  const bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  if (std::fclose(file) != 0 || !written) return fail(Errc::io_error, "the trace " + path + " is incomplete: disk full?");
  return {};
}

}  // namespace helios::runtime
