#include "model/config.hpp"

#include <fmt/format.h>

#include <cmath>
#include <numbers>

namespace helios::model {

namespace {

constexpr std::int64_t kMaxLayers = 1024;
constexpr std::int64_t kMaxWidth = 1 << 20;
constexpr std::int64_t kMaxHeads = 4096;
constexpr std::int64_t kMaxContext = 1 << 24;

}  // namespace

Result<void> ModelConfig::check(const std::string& where) const {
  const auto bad = [&](std::string why) { return fail(Errc::bad_file, where + ": " + std::move(why)); };
  struct Bound {
    const char* what;
    std::int64_t value, limit;
  };
  for (const Bound& b :
       {Bound{"the number of layers", layers, kMaxLayers}, Bound{"the hidden width", hidden, kMaxWidth},
        Bound{"the feed-forward width", feed_forward, kMaxWidth},
        Bound{"the number of heads", heads, kMaxHeads}, Bound{"the number of kv heads", kv_heads, kMaxHeads},
        Bound{"the head width", head_dim, kMaxWidth}, Bound{"the context", context, kMaxContext}}) {
    if (b.value < 1 || b.value > b.limit)
      return bad(fmt::format("{} is {}, outside 1..{}", b.what, b.value, b.limit));
  }
  if (heads % kv_heads != 0) return bad(fmt::format("{} heads cannot share {} kv heads", heads, kv_heads));
  if (parts.rope != RopeKind::none) {
    if (rope_dims < 2 || rope_dims % 2 != 0 || rope_dims > head_dim) {
      return bad(fmt::format("RoPE over {} elements does not fit heads of {}", rope_dims, head_dim));
    }
    if (!(rope_base > 0.0F) || !std::isfinite(rope_base) || !(rope_scale > 0.0F) ||
        !std::isfinite(rope_scale)) {
      return bad(fmt::format("RoPE base {} and scale {} must be above 0 and finite", rope_base, rope_scale));
    }
    for (const float factor : rope_factors) {
      if (!(factor > 0.0F) || !std::isfinite(factor))
        return bad(fmt::format("a RoPE factor is {}, it must be above 0", factor));
    }
    if (!rope_factors.empty() && rope_factors.size() != static_cast<std::size_t>(rope_dims / 2)) {
      return bad(fmt::format("{} RoPE factors for {} pairs", rope_factors.size(), rope_dims / 2));
    }
  }
  if (!(norm_epsilon > 0.0F) || !(norm_epsilon < 1.0F))
    return bad(fmt::format("norm epsilon {} must be above 0 and below 1", norm_epsilon));
  return {};
}

std::vector<float> llama3_factors(const Llama3Scaling& s, int rope_dims, double rope_base) {
  std::vector<float> factors;
  for (int i = 0; i < rope_dims / 2; ++i) {
    const double wavelength = 2.0 * std::numbers::pi * std::pow(rope_base, 2.0 * i / rope_dims);
    double kept = 1.0;  // share of the frequency
    if (wavelength > s.original_context / s.low_freq_factor) {
      kept = 1.0 / s.factor;
    } else if (wavelength >= s.original_context / s.high_freq_factor) {
      const double smooth =
          (s.original_context / wavelength - s.low_freq_factor) / (s.high_freq_factor - s.low_freq_factor);
      kept = (1.0 - smooth) / s.factor + smooth;
    }
    factors.push_back(static_cast<float>(1.0 / kept));
  }
  return factors;
}

}  // namespace helios::model
