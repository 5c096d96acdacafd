#include "model/sampling.hpp"

#include <fmt/format.h>

namespace helios::model {

namespace {

// Written so that NaN is refused too.
bool within(float value, float low, float high) {
  return value >= low && value <= high;
}

Error refuse(const char* field, float value, const char* allowed) {
  return fail(Errc::bad_request, fmt::format("{}={} is not allowed: {}", field, value, allowed));
}

}  // namespace

Result<void> Sampling::validate() const {
  constexpr int kMaxLogprobs = gpu::SampleOut::kMaxLogprobs;
  if (!within(temperature, 0.0F, 100.0F)) return refuse("temperature", temperature, "0 to 100");
  if (top_k < 0)
    return fail(Errc::bad_request, fmt::format("top_k={} is not allowed: 0 (all) or more", top_k));
  if (!(top_p > 0.0F && top_p <= 1.0F)) return refuse("top_p", top_p, "more than 0, at most 1");
  if (!(min_p >= 0.0F && min_p < 1.0F)) return refuse("min_p", min_p, "0 to less than 1");
  if (!(repetition_penalty > 0.0F && repetition_penalty <= 10.0F)) {
    return refuse("repetition_penalty", repetition_penalty, "more than 0, at most 10");
  }
  if (logprobs < 0 || logprobs > kMaxLogprobs) {
    return fail(Errc::bad_request,
                fmt::format("logprobs={} is not allowed: 0 to {}", logprobs, kMaxLogprobs));
  }
  if (max_tokens < 1) {
    return fail(Errc::bad_request, fmt::format("max_tokens={} is not allowed: 1 or more", max_tokens));
  }
  for (const std::string& text : stop) {
    if (text.empty()) return fail(Errc::bad_request, "an empty stop string would end every answer at once");
  }
  return {};
}

gpu::SampleParams to_params(const Sampling& sampling, std::uint64_t counter, const std::int32_t* history,
                            std::int32_t history_length) {
  gpu::SampleParams params;
  params.temperature = sampling.temperature;
  params.top_k = sampling.top_k;
  params.top_p = sampling.top_p;
  params.min_p = sampling.min_p;
  params.repetition_penalty = sampling.repetition_penalty;
  params.seed = sampling.seed;
  params.counter = counter;
  params.history = history;
  params.history_length = history_length;
  params.n_logprobs = sampling.logprobs;
  return params;
}

}  // namespace helios::model
