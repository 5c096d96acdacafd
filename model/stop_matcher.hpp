#pragma once
// Stop strings in a stream of text.

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace helios::model {

/// Finds the stop string that is completed first (of those completed by one byte, the longest). What it
/// returns does not depend on how the text was cut. Withholds only the longest suffix that could still become
/// a stop string. Cost: per byte, amortised constant for each stop string (Knuth-Morris-Pratt). One per
/// stream; not thread-safe.
class StopMatcher {
 public:
  /// Empty strings are ignored.
  explicit StopMatcher(std::vector<std::string> stops);

  /// Text that is safe to emit now: nothing of a stop string. Empty after a match.
  std::string push(std::string_view text);
  /// The stop string that was found, if any.
  const std::optional<std::string>& matched() const noexcept { return matched_; }
  /// At the end of the stream: what was withheld. Empty after a match.
  std::string flush();

 private:
  struct Pattern {
    std::string text;
    std::vector<std::size_t> fallback;  // longest proper border of each prefix
    std::size_t state = 0;              // bytes of `text` that the input ends with
  };
  std::vector<Pattern> patterns_;
  std::string pending_;
  std::optional<std::string> matched_;
};

}  // namespace helios::model
