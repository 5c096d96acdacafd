#include "gpu/kernels/rope_table.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace helios::gpu {

namespace {

constexpr std::size_t kSlots = 1024;  // positions kept, by their low bits: 256 KB a thread at 64 dims

struct Table {
  Rope rope{.dims = -1};
  std::vector<float> factors;  // copied: another model's may stand at the same address later
  std::vector<double> frequencies;
  std::vector<std::int32_t> positions;
  std::vector<float> turns;

  bool fits(const Rope& other) const {
    if (rope.dims != other.dims || rope.freq_base != other.freq_base || rope.scale != other.scale)
      return false;
    if (other.factors == nullptr) return factors.empty();
    return !factors.empty() && std::equal(factors.begin(), factors.end(), other.factors);
  }
  void reset(const Rope& other) {
    rope = other;
    factors.clear();
    if (rope.factors != nullptr) factors.assign(rope.factors, rope.factors + rope.dims / 2);
    frequencies.clear();
    for (std::int32_t i = 0; i < rope.dims / 2; ++i) {
      const double factor = factors.empty() ? 1.0 : double{factors[static_cast<std::size_t>(i)]};
      frequencies.push_back(double{rope.scale} * std::pow(double{rope.freq_base}, -2.0 * i / rope.dims) /
                            factor);
    }
    positions.assign(kSlots, -1);
    turns.assign(kSlots * static_cast<std::size_t>(rope.dims), 0.0F);
  }
};

}  // namespace

const float* rope_turns(const Rope& rope, std::int32_t position) {
  thread_local Table table;
  if (!table.fits(rope)) table.reset(rope);
  const std::size_t slot = static_cast<std::size_t>(position) % kSlots;
  float* turns = table.turns.data() + slot * static_cast<std::size_t>(rope.dims);
  if (table.positions[slot] == position) return turns;
  for (std::size_t i = 0; i < table.frequencies.size(); ++i) {
    const double angle = position * table.frequencies[i];
    turns[2 * i] = static_cast<float>(std::cos(angle));
    turns[2 * i + 1] = static_cast<float>(std::sin(angle));
  }
  table.positions[slot] = position;
  return turns;
}

}  // namespace helios::gpu
