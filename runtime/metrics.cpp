#include "runtime/metrics.hpp"

#include <spdlog/fmt/fmt.h>

#include <cassert>
#include <utility>

namespace helios::runtime {

namespace {

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\' || c == '"') out += '\\';
    if (c == '\n') {
      out += "\\n";
    } else {
      out += c;
    }
  }
  return out;
}

std::string label_text(const Labels& labels, const std::string& extra = {}) {
  std::string out;
  for (const auto& [key, value] : labels) {
    if (!out.empty()) out += ',';
    out += key + "=\"" + escaped(value) + '"';
  }
  if (!extra.empty()) out += (out.empty() ? "" : ",") + extra;
  return out.empty() ? out : '{' + out + '}';
}

}  // namespace

Histogram::Histogram(std::vector<double> bounds) : bounds_(std::move(bounds)), buckets_(bounds_.size()) {}

void Histogram::observe(double value) noexcept {
  for (std::size_t i = 0; i < bounds_.size(); ++i) {
    if (value <= bounds_[i]) buckets_[i].fetch_add(1, std::memory_order_relaxed);
  }
  count_.fetch_add(1, std::memory_order_relaxed);
  sum_.fetch_add(value, std::memory_order_relaxed);
}

struct Registry::Family {
  std::string help, type;
  std::map<Labels, std::unique_ptr<Counter>> counters;
  std::map<Labels, std::unique_ptr<Gauge>> gauges;
  std::map<Labels, std::unique_ptr<Histogram>> histograms;
};

Registry::Registry() = default;
Registry::~Registry() = default;

Registry::Family& Registry::family(const std::string& name, const std::string& help, const char* type) {
  auto& slot = families_[name];
  if (!slot) slot = std::make_unique<Family>(Family{help, type, {}, {}, {}});
  assert(slot->type == type && "one name, one type");
  return *slot;
}

Counter& Registry::counter(const std::string& name, const std::string& help, const Labels& labels) {
  const std::lock_guard lock(mutex_);
  auto& slot = family(name, help, "counter").counters[labels];
  if (!slot) slot = std::make_unique<Counter>();
  return *slot;
}

Gauge& Registry::gauge(const std::string& name, const std::string& help, const Labels& labels) {
  const std::lock_guard lock(mutex_);
  auto& slot = family(name, help, "gauge").gauges[labels];
  if (!slot) slot = std::make_unique<Gauge>();
  return *slot;
}

Histogram& Registry::histogram(const std::string& name, const std::string& help, std::vector<double> bounds,
                               const Labels& labels) {
  const std::lock_guard lock(mutex_);
  auto& slot = family(name, help, "histogram").histograms[labels];
  if (!slot) slot = std::make_unique<Histogram>(std::move(bounds));
  return *slot;
}

std::string Registry::prometheus_text() const {
  const std::lock_guard lock(mutex_);
  std::string out;
  for (const auto& [name, f] : families_) {
    out += fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, f->help, name, f->type);
    for (const auto& [labels, c] : f->counters) out += fmt::format("{}{} {}\n", name, label_text(labels), c->value());
    for (const auto& [labels, g] : f->gauges) out += fmt::format("{}{} {}\n", name, label_text(labels), g->value());
    for (const auto& [labels, h] : f->histograms) {
      for (std::size_t i = 0; i < h->bounds_.size(); ++i) {
        out += fmt::format("{}_bucket{} {}\n", name, label_text(labels, fmt::format("le=\"{}\"", h->bounds_[i])),
                           h->buckets_[i].load(std::memory_order_relaxed));
      }
      out += fmt::format("{}_bucket{} {}\n", name, label_text(labels, "le=\"+Inf\""), h->count());
      out += fmt::format("{}_sum{} {}\n{}_count{} {}\n", name, label_text(labels), h->sum(), name, label_text(labels), h->count());
    }
  }
  return out;
}

}  // namespace helios::runtime
