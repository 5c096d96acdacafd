#pragma once
// The Performance History Table as plain values: one row per (model, depth). PAPER: Kumar et al., arXiv
// 2504.10724, section 3.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace helios::actors::policy {

/// Where a figure comes from, weakest first: a fresher source replaces a weaker one.
enum class Source : unsigned char { assumed, repository, calibration, profiled, live };
std::string_view to_string(Source source) noexcept;

struct Figure {
  double value = 0;
  double low = 0, high = 0;  // 95 % interval; both = value where none is known
  std::int64_t samples = 0;
  Source source = Source::assumed;
  double age_s = 0;
};

/// A share of `samples` with its 95 % interval (Wilson 1927). samples 0: [0, 1].
Figure share_figure(std::int64_t hits, std::int64_t samples, Source source);

/// What running `model` cut at `depth` gives. Absent: not known, never zero.
struct HistoryRow {
  int model = 0;  // index into the candidates
  int depth = 0;  // layers run, 1..L
  int layers = 0;  // L
  std::optional<Figure> tokens_per_s;  // of the whole batch that runs now
  std::optional<Figure> ttft_ms, tpot_ms;
  std::optional<Figure> agreement;    // with the model's own full depth
  std::optional<Figure> breach_rate;  // share of tokens below the exit's threshold
  std::optional<Figure> perplexity;   // of the same text for all candidates
  std::optional<Figure> accuracy;     // of tasks, share
  std::optional<Figure> j_per_token;
  std::size_t device_bytes = 0;  // weights to `depth`, head and workspace
  double load_s = 0;             // of what is not resident yet

  bool full() const noexcept { return depth == layers; }
};

}  // namespace helios::actors::policy
