#include "apps/size_text.hpp"

#include <spdlog/fmt/fmt.h>

#include <charconv>
#include <cmath>

namespace helios::apps {

namespace {

struct Unit {
  std::string_view name;
  double bytes;
};

constexpr Unit kUnits[] = {
    {"", 1},     {"B", 1},    {"KiB", 1024.0}, {"MiB", 1048576.0}, {"GiB", 1073741824.0},
    {"kB", 1e3}, {"MB", 1e6}, {"GB", 1e9}};

}  // namespace

Result<std::uint64_t> parse_size(std::string_view text) {
  double value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  if (code == std::errc{} && std::isfinite(value) && value >= 0) {
    for (const Unit& known : kUnits) {
      if (known.name == unit && value * known.bytes < 9e18) {
        return static_cast<std::uint64_t>(value * known.bytes);
      }
    }
  }
  return fail(
      Errc::bad_request,
      fmt::format("'{}' is not a size: use a number with B, KiB, MiB, GiB, kB, MB or GB, such as 512MiB",
                  text));
}

std::string format_size(std::uint64_t bytes) {
  constexpr std::string_view names[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 1024 && unit + 1 < std::size(names)) {
    value /= 1024;
    ++unit;
  }
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.1f} {}", value, names[unit]);
}

}  // namespace helios::apps
