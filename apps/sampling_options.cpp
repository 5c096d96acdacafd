#include "apps/sampling_options.hpp"

#include <CLI/CLI.hpp>

namespace helios::apps {

void add_sampling_options(CLI::App& command, SamplingOptions& options) {
  command.add_option("--max-tokens", options.max_tokens, "Tokens to generate at most")
      ->check(CLI::PositiveNumber);
  command.add_option("--temperature", options.temperature, "0 takes the likeliest token");
  command.add_option("--top-k", options.top_k, "Sample among the k likeliest (0: all)");
  command.add_option("--top-p", options.top_p, "Sample within this much probability");
  command.add_option("--min-p", options.min_p, "Drop tokens below this share of the likeliest");
  command.add_option("--repetition-penalty", options.repetition_penalty,
                     "Divides the score of tokens seen before");
  command.add_option("--seed", options.seed, "Same seed, same text, whatever else runs");
  command.add_option("--stop", options.stop, "End before this text (repeatable)");
  command.add_flag("--ignore-eos", options.ignore_eos, "Go on past the end-of-text token");
}

model::Sampling SamplingOptions::to_sampling() const {
  model::Sampling sampling;
  sampling.max_tokens = max_tokens;
  sampling.temperature = temperature;
  sampling.top_k = top_k;
  sampling.top_p = top_p;
  sampling.min_p = min_p;
  sampling.repetition_penalty = repetition_penalty;
  sampling.seed = seed;
  sampling.stop = stop;
  sampling.ignore_eos = ignore_eos;
  return sampling;
}

}  // namespace helios::apps
