#include "model/stop_matcher.hpp"

#include <catch2/catch_test_macros.hpp>
#include <random>

using helios::model::StopMatcher;

namespace {

struct Outcome {
  std::string text;
  std::optional<std::string> matched;
  bool operator==(const Outcome&) const = default;
};

// By definition: the first end of any stop string; of those that end there, the longest.
Outcome expected(const std::string& text, const std::vector<std::string>& stops) {
  for (std::size_t end = 1; end <= text.size(); ++end) {
    const std::string* best = nullptr;
    for (const std::string& stop : stops) {
      if (!stop.empty() && end >= stop.size() && text.compare(end - stop.size(), stop.size(), stop) == 0 &&
          (best == nullptr || stop.size() > best->size())) {
        best = &stop;
      }
    }
    if (best != nullptr) return {text.substr(0, end - best->size()), *best};
  }
  return {text, std::nullopt};
}

// The longest suffix of `text` that is a proper prefix of a stop string.
std::size_t must_hold(const std::string& text, const std::vector<std::string>& stops) {
  std::size_t longest = 0;
  for (const std::string& stop : stops) {
    for (std::size_t length = 1; length < stop.size() && length <= text.size(); ++length) {
      if (text.compare(text.size() - length, length, stop, 0, length) == 0)
        longest = std::max(longest, length);
    }
  }
  return longest;
}

}  // namespace

TEST_CASE("StopMatcher: text before the stop string leaves, the stop string does not", "[model]") {
  StopMatcher matcher({"\n\nUser:", "STOP"});
  CHECK(matcher.push("Hello ST") == "Hello ");
  CHECK(matcher.push("ILL here\n") == "STILL here");
  CHECK(matcher.push("\nUs") == "");
  CHECK(!matcher.matched());
  CHECK(matcher.push("er: more") == "");
  CHECK(matcher.matched() == "\n\nUser:");
  CHECK(matcher.push("x") == "");
  CHECK(matcher.flush() == "");
}

TEST_CASE("StopMatcher: what was withheld is released at the end", "[model]") {
  StopMatcher matcher({"END"});
  CHECK(matcher.push("the EN") == "the ");
  CHECK(matcher.flush() == "EN");
  CHECK(!matcher.matched());
  CHECK(matcher.push("D.") == "D.");  // the flush forgot the prefix
}

TEST_CASE("StopMatcher: without stop strings everything passes", "[model]") {
  StopMatcher none({});
  StopMatcher empty({""});
  CHECK(none.push("abc") == "abc");
  CHECK(empty.push("abc") == "abc");
  CHECK(!empty.matched());
}

TEST_CASE("StopMatcher: any cutting gives what the definition gives, and no more is held than must be",
          "[model]") {
  std::mt19937 rng(7);
  const auto word = [&](int least, int most) {
    std::string out(static_cast<std::size_t>(std::uniform_int_distribution<int>(least, most)(rng)), 'a');
    for (char& c : out) c = static_cast<char>('a' + std::uniform_int_distribution<int>(0, 1)(rng));
    return out;
  };
  int matches = 0;
  for (int round = 0; round < 4000; ++round) {
    std::vector<std::string> stops;
    for (int i = std::uniform_int_distribution<int>(1, 3)(rng); i > 0; --i) stops.push_back(word(2, 7));
    const std::string text = word(0, 30);
    StopMatcher matcher(stops);
    Outcome outcome;
    for (std::size_t at = 0; at < text.size() && !matcher.matched();) {
      const std::size_t length = std::uniform_int_distribution<std::size_t>(1, 6)(rng);
      outcome.text += matcher.push(std::string_view(text).substr(at, length));
      at = std::min(text.size(), at + length);
      if (!matcher.matched()) CHECK(at - outcome.text.size() == must_hold(text.substr(0, at), stops));
    }
    outcome.text += matcher.flush();
    outcome.matched = matcher.matched();
    matches += outcome.matched.has_value() ? 1 : 0;
    CHECK(outcome == expected(text, stops));
  }
  CHECK(matches > 1000);
  CHECK(matches < 3900);
}
