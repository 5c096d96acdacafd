#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace helios::apps {

/// A prompt of about `tokens` tokens: common English words, one token each in byte-level BPE vocabularies.
/// The report carries the model's own count. Same seed and index, same prompt.
std::string bench_prompt(int tokens, std::uint64_t seed, int index);

/// Arrival times in seconds of a Poisson process of `rate` requests a second, from 0, seeded.
std::vector<double> poisson_arrivals(double rate, int count, std::uint64_t seed);

}  // namespace helios::apps
