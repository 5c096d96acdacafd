#include "runtime/metrics.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <mutex>
#include <stdexcept>

namespace helios::runtime {

namespace {

enum class Kind : unsigned char { counter, gauge, histogram };

std::string escape(std::string_view text, bool quotes) {
  std::string out;
  for (const char c : text) {
    if (c == '\\') {
      out += "\\\\";
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '"' && quotes) {
      out += "\\\"";
    } else {
      out += c;
    }
  }
  return out;
}

std::string number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  char buffer[32];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
  return std::string(buffer, end);
}

std::string with_label(const std::string& labels, const std::string& extra) {
  if (labels.empty()) return "{" + extra + "}";
  return labels.substr(0, labels.size() - 1) + "," + extra + "}";
}

/// `{a="x",b="y"}`, sorted by name; "" without labels.
std::string render(Labels labels) {
  if (labels.empty()) return {};
  std::sort(labels.begin(), labels.end());
  std::string out = "{";
  for (const auto& [name, value] : labels) {
    if (out.size() > 1) out += ',';
    out += name + "=\"" + escape(value, true) + '"';
  }
  return out + '}';
}

}  // namespace

Histogram::Histogram(std::vector<double> upper_bounds)
    : bounds_(std::move(upper_bounds)),
      buckets_(std::make_unique<std::atomic<std::uint64_t>[]>(bounds_.size() + 1)) {}

void Histogram::observe(double value) noexcept {
  // A NaN is above all bounds, so the count stays true.
  const auto at = std::isnan(value) ? bounds_.end() : std::lower_bound(bounds_.begin(), bounds_.end(), value);
  buckets_[static_cast<std::size_t>(at - bounds_.begin())].fetch_add(1, std::memory_order_relaxed);
  sum_.add(value);
}

std::uint64_t Histogram::bucket(std::size_t index) const noexcept {
  return buckets_[index].load(std::memory_order_relaxed);
}

std::uint64_t Histogram::count() const noexcept {
  std::uint64_t total = 0;
  for (std::size_t i = 0; i <= bounds_.size(); ++i) total += bucket(i);
  return total;
}

std::vector<double> exponential_bounds(double start, double factor, std::size_t count) {
  std::vector<double> bounds;
  for (double bound = start; bounds.size() < count; bound *= factor) bounds.push_back(bound);
  return bounds;
}

struct Registry::Impl {
  struct Series {
    std::unique_ptr<Counter> counter;
    std::unique_ptr<Gauge> gauge;
    std::unique_ptr<Histogram> histogram;
    std::function<double()> read;
  };
  struct Family {
    Kind kind;
    std::string help;
    std::map<std::string, Series> series;  // by rendered labels
  };

  /// Null: over the bound. `mutex` is held.
  Series* find(std::string_view name, Kind kind, Labels labels, std::string_view help) {
    auto [family, is_new] = families.try_emplace(std::string(name), Family{kind, std::string(help), {}});
    if (family->second.kind != kind)
      throw std::invalid_argument("metric " + std::string(name) + ": two kinds");
    if (family->second.help.empty()) family->second.help = help;
    std::string key = render(std::move(labels));
    const auto found = family->second.series.find(key);
    if (found != family->second.series.end()) return &found->second;
    if (count >= kSeriesMax) {
      ++refused;
      return nullptr;
    }
    ++count;
    return &family->second.series[std::move(key)];
  }

  mutable std::mutex mutex;
  std::map<std::string, Family> families;
  std::size_t count = 0;
  std::uint64_t refused = 0;
  Counter overflow_counter;
  Gauge overflow_gauge;
  Histogram overflow_histogram{{}};
};

Registry::Registry() : impl_(std::make_unique<Impl>()) {}
Registry::~Registry() = default;

Counter& Registry::counter(std::string_view name, Labels labels, std::string_view help) {
  const std::lock_guard lock(impl_->mutex);
  Impl::Series* series = impl_->find(name, Kind::counter, std::move(labels), help);
  if (series == nullptr) return impl_->overflow_counter;
  if (!series->counter) series->counter = std::make_unique<Counter>();
  return *series->counter;
}

Gauge& Registry::gauge(std::string_view name, Labels labels, std::string_view help) {
  const std::lock_guard lock(impl_->mutex);
  Impl::Series* series = impl_->find(name, Kind::gauge, std::move(labels), help);
  if (series == nullptr) return impl_->overflow_gauge;
  if (!series->gauge) series->gauge = std::make_unique<Gauge>();
  return *series->gauge;
}

Histogram& Registry::histogram(std::string_view name, std::vector<double> upper_bounds, Labels labels,
                               std::string_view help) {
  const std::lock_guard lock(impl_->mutex);
  Impl::Series* series = impl_->find(name, Kind::histogram, std::move(labels), help);
  if (series == nullptr) return impl_->overflow_histogram;
  if (!series->histogram) series->histogram = std::make_unique<Histogram>(std::move(upper_bounds));
  return *series->histogram;
}

void Registry::gauge_callback(std::string_view name, Labels labels, std::function<double()> read,
                              std::string_view help) {
  const std::lock_guard lock(impl_->mutex);
  Impl::Series* series = impl_->find(name, Kind::gauge, std::move(labels), help);
  if (series != nullptr) series->read = std::move(read);
}

std::string Registry::prometheus_text() const {
  const std::lock_guard lock(impl_->mutex);
  std::string out;
  for (const auto& [name, family] : impl_->families) {
    static constexpr std::string_view kNames[] = {"counter", "gauge", "histogram"};
    if (!family.help.empty()) out += "# HELP " + name + " " + escape(family.help, false) + "\n";
    out += "# TYPE " + name + " " + std::string(kNames[static_cast<int>(family.kind)]) + "\n";
    for (const auto& [labels, series] : family.series) {
      if (series.histogram) {
        const Histogram& h = *series.histogram;
        std::uint64_t total = 0;
        for (std::size_t i = 0; i <= h.bounds().size(); ++i) {
          total += h.bucket(i);
          const std::string bound = i < h.bounds().size() ? number(h.bounds()[i]) : "+Inf";
          out += name + "_bucket" + with_label(labels, "le=\"" + bound + "\"") + " " + std::to_string(total) +
                 "\n";
        }
        out += name + "_sum" + labels + " " + number(h.sum()) + "\n";
        out += name + "_count" + labels + " " + std::to_string(total) + "\n";
      } else if (series.counter) {
        out += name + labels + " " + std::to_string(series.counter->value()) + "\n";
      } else {
        out += name + labels + " " +
               number(series.read    ? series.read()
                      : series.gauge ? series.gauge->value()
                                     : 0) +
               "\n";
      }
    }
  }
  if (impl_->refused > 0) {
    out += "# TYPE helios_metrics_refused_total counter\nhelios_metrics_refused_total " +
           std::to_string(impl_->refused) + "\n";
  }
  return out;
}

}  // namespace helios::runtime
