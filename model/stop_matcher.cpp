#include "model/stop_matcher.hpp"

#include <algorithm>
#include <utility>

namespace helios::model {

StopMatcher::StopMatcher(std::vector<std::string> stops) {
  for (std::string& stop : stops) {
    if (stop.empty()) continue;
    Pattern pattern{std::move(stop), {}, 0};
    pattern.fallback.resize(pattern.text.size() + 1, 0);
    std::size_t border = 0;
    for (std::size_t i = 1; i < pattern.text.size(); ++i) {
      while (border > 0 && pattern.text[i] != pattern.text[border]) border = pattern.fallback[border];
      if (pattern.text[i] == pattern.text[border]) ++border;
      pattern.fallback[i + 1] = border;
    }
    patterns_.push_back(std::move(pattern));
  }
}

std::string StopMatcher::push(std::string_view text) {
  if (matched_) return {};
  if (patterns_.empty()) return std::string(text);
  const std::size_t before = pending_.size();
  pending_ += text;
  for (std::size_t at = before; at < pending_.size(); ++at) {
    const char c = pending_[at];
    const Pattern* found = nullptr;
    for (Pattern& pattern : patterns_) {
      std::size_t& state = pattern.state;  // below its length: a match ends the stream
      while (state > 0 && pattern.text[state] != c) state = pattern.fallback[state];
      if (pattern.text[state] == c) ++state;
      if (state == pattern.text.size() && (found == nullptr || found->text.size() < state)) found = &pattern;
    }
    if (found != nullptr) {
      std::string out = pending_.substr(0, at + 1 - found->text.size());
      matched_ = found->text;
      pending_.clear();
      return out;
    }
  }
  std::size_t held = 0;
  for (const Pattern& pattern : patterns_) held = std::max(held, pattern.state);
  std::string out = pending_.substr(0, pending_.size() - held);
  pending_.erase(0, out.size());
  return out;
}

std::string StopMatcher::flush() {
  if (matched_) return {};
  for (Pattern& pattern : patterns_) pattern.state = 0;
  return std::exchange(pending_, {});
}

}  // namespace helios::model
