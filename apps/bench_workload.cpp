#include "apps/bench_workload.hpp"

#include <cmath>
#include <iterator>

namespace helios::apps {

namespace {

constexpr const char* kWords[] = {
    "time",     "year",    "people",   "way",    "day",        "man",    "thing",   "woman",
    "life",     "child",   "world",    "school", "state",      "family", "student", "group",
    "country",  "problem", "hand",     "part",   "place",      "case",   "week",    "company",
    "system",   "program", "question", "work",   "government", "number", "night",   "point",
    "home",     "water",   "room",     "mother", "area",       "money",  "story",   "fact",
    "month",    "lot",     "right",    "study",  "book",       "eye",    "job",     "word",
    "business", "issue",   "side",     "kind",   "head",       "house",  "service", "friend",
    "father",   "power",   "hour",     "game",   "line",       "end",    "member",  "law"};

/// SplitMix64: the same numbers with every standard library.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15ULL);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
  }
  double uniform() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }  // [0, 1)

 private:
  std::uint64_t state_;
};

}  // namespace

std::string bench_prompt(int tokens, std::uint64_t seed, int index) {
  Random random(seed * 1000003 + static_cast<std::uint64_t>(index));
  std::string prompt;
  for (int i = 0; i < tokens; ++i) {
    if (i > 0) prompt += ' ';
    prompt += kWords[random.next() % std::size(kWords)];
  }
  return prompt;
}

std::vector<double> poisson_arrivals(double rate, int count, std::uint64_t seed) {
  Random random(seed);
  std::vector<double> arrivals;
  double now = 0;
  for (int i = 0; i < count; ++i) {
    arrivals.push_back(now);
    now += -std::log(1 - random.uniform()) / rate;
  }
  return arrivals;
}

}  // namespace helios::apps
