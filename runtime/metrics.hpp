#pragma once
// Counters, gauges and histograms by name and labels, written as Prometheus text.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace helios::runtime {

/// Goes up only. Any thread, relaxed atomics.
class Counter {
 public:
  void add(std::uint64_t n = 1) noexcept { value_.fetch_add(n, std::memory_order_relaxed); }
  std::uint64_t value() const noexcept { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> value_{0};
};

/// Goes up and down.
class Gauge {
 public:
  void set(double value) noexcept { value_.store(value, std::memory_order_relaxed); }
  void add(double delta) noexcept {
    double old = value_.load(std::memory_order_relaxed);
    while (!value_.compare_exchange_weak(old, old + delta, std::memory_order_relaxed)) {
    }
  }
  double value() const noexcept { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<double> value_{0};
};

/// Counts observations by upper bound.
class Histogram {
 public:
  explicit Histogram(std::vector<double> upper_bounds);
  void observe(double value) noexcept;
  std::uint64_t count() const noexcept;
  double sum() const noexcept { return sum_.value(); }
  const std::vector<double>& bounds() const noexcept { return bounds_; }
  /// Observations in bucket `index`, not cumulated; index == bounds().size() is above all bounds.
  std::uint64_t bucket(std::size_t index) const noexcept;

 private:
  const std::vector<double> bounds_;  // ascending
  std::unique_ptr<std::atomic<std::uint64_t>[]> buckets_;
  Gauge sum_;
};

/// start, start * factor, ...: `count` upper bounds.
std::vector<double> exponential_bounds(double start, double factor, std::size_t count);

using Labels = std::vector<std::pair<std::string, std::string>>;

/// The same name and labels give the same object, valid as long as the registry. Look them up once, not per
/// event. At most kSeriesMax series: beyond, one nameless object per kind takes what is not kept (and the
/// text says how many were refused). A name used with two kinds throws std::invalid_argument.
class Registry {
 public:
  static constexpr std::size_t kSeriesMax = 10'000;

  Registry();
  ~Registry();
  Registry(const Registry&) = delete;
  Registry& operator=(const Registry&) = delete;

  Counter& counter(std::string_view name, Labels labels = {}, std::string_view help = {});
  Gauge& gauge(std::string_view name, Labels labels = {}, std::string_view help = {});
  Histogram& histogram(std::string_view name, std::vector<double> upper_bounds, Labels labels = {},
                       std::string_view help = {});
  /// A gauge read when the text is written; replaces an earlier one of the same name and labels.
  void gauge_callback(std::string_view name, Labels labels, std::function<double()> read,
                      std::string_view help = {});

  /// Text exposition format 0.0.4, sorted by name.
  std::string prometheus_text() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace helios::runtime
