#pragma once
#include <CLI/App.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "model/sampling.hpp"

namespace helios::apps {

/// Sampling flags, in the spelling of the line protocol.
struct SamplingOptions {
  int max_tokens = 256;
  float temperature = 0;
  int top_k = 0;
  float top_p = 1, min_p = 0, repetition_penalty = 1;
  std::uint64_t seed = 0;
  std::vector<std::string> stop;
  bool ignore_eos = false;

  model::Sampling to_sampling() const;
};

void add_sampling_options(CLI::App& command, SamplingOptions& options);

}  // namespace helios::apps
