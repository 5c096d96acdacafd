#include "model/unigram.hpp"

#include <algorithm>
#include <limits>

#include "model/pretokenizer.hpp"

namespace helios::model {
namespace {

constexpr double kUnknownPenalty = 10;  // below the worst token
constexpr auto kNowhere = std::numeric_limits<std::size_t>::max();

}  // namespace

void Unigram::add(std::string_view spelling, std::int32_t id, double score) {
  trie_.add(spelling, id);
  const auto at = static_cast<std::size_t>(id);
  if (scores_.size() <= at) scores_.resize(at + 1, 0);
  scores_[at] = score;
  lowest_ = std::min(lowest_, score);
}

std::vector<Unigram::Part> Unigram::cut(std::string_view text) const {
  struct Best {  // way to an offset
    double score = 0;
    std::size_t begin = kNowhere;  // of its last part
    std::int32_t id = -1;
  };
  std::vector<Best> best(text.size() + 1);
  const auto offer = [&](std::size_t begin, std::size_t end, std::int32_t id, double score) {
    if (best[end].begin == kNowhere || score > best[end].score) best[end] = {score, begin, id};
  };
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t point = decode_code_point(text.substr(at)).length;
    const double so_far = best[at].score;
    bool covered = false;  // this one code point has a token
    trie_.prefixes(text.substr(at), [&](std::int32_t id, std::size_t length) {
      offer(at, at + length, id, so_far + scores_[static_cast<std::size_t>(id)]);
      covered = covered || length == point;
    });
    if (!covered) offer(at, at + point, -1, so_far + lowest_ - kUnknownPenalty);
    at += point;
  }
  std::vector<Part> parts;
  for (std::size_t end = text.size(); end > 0; end = best[end].begin) {
    if (best[end].id < 0 && !parts.empty() && parts.back().id < 0) {
      parts.back().begin = best[end].begin;
    } else {
      parts.push_back({best[end].id, best[end].begin, end});
    }
  }
  std::reverse(parts.begin(), parts.end());
  return parts;
}

}  // namespace helios::model
