#include "model/sampling.hpp"

#include <cmath>
#include <set>

#include "test/model/model_fixture.hpp"

namespace helios::test {

using model::Sampling;

TEST_CASE("Sampling: what cannot be is refused by name", "[model]") {
  const auto refused = [](auto change, const char* name) {
    Sampling sampling;
    change(sampling);
    const auto valid = sampling.validate();
    REQUIRE_FALSE(valid.has_value());
    CHECK(valid.error().code == Errc::bad_request);
    CHECK(valid.error().message.find(name) != std::string::npos);
  };
  CHECK(Sampling{}.validate().has_value());
  refused([](Sampling& s) { s.temperature = -1; }, "temperature");
  refused([](Sampling& s) { s.temperature = std::nanf(""); }, "temperature");
  refused([](Sampling& s) { s.top_k = -1; }, "top_k");
  refused([](Sampling& s) { s.top_p = 0; }, "top_p");
  refused([](Sampling& s) { s.top_p = 1.5F; }, "top_p");
  refused([](Sampling& s) { s.min_p = 1; }, "min_p");
  refused([](Sampling& s) { s.repetition_penalty = 0; }, "repetition_penalty");
  refused([](Sampling& s) { s.logprobs = 21; }, "logprobs");
  refused([](Sampling& s) { s.max_tokens = 0; }, "max_tokens");
  refused([](Sampling& s) { s.stop = {""}; }, "stop");
}

TEST_CASE("Sampling: seed decides, penalty changes, logprobs agree with the logits", "[model]") {
  const TempFile path(".gguf");
  write_tiny_model(path.path());
  Loaded l = Loaded::make(path.path(), 6, {.max_rows = 64, .max_outputs = 1});
  const auto prompt = some_ids(9, 2);
  const auto run = [&](Sampling sampling) {
    model::Sequential sequence(*l.transformer, 6);
    return must(sequence.generate(prompt, sampling));
  };
  Sampling warm = greedy(24);
  warm.temperature = 1.5F;
  warm.seed = 7;
  const auto first = run(warm);
  CHECK(run(warm) == first);
  warm.seed = 8;
  CHECK(run(warm) != first);
  warm.top_k = 1;  // only the likeliest is left
  CHECK(run(warm) == run(greedy(24)));

  Sampling penalised = greedy(24);
  penalised.repetition_penalty = 10.0F;
  const auto fresh = run(penalised);
  CHECK(std::set(fresh.begin(), fresh.end()).size() > 12);

  Sampling wanted = greedy(1);
  wanted.logprobs = 5;
  model::Sequential sequence(*l.transformer, 6);
  const auto result = must(sequence.feed(prompt, wanted, true));
  double sum = 0.0;
  for (const float logit : result.logits) sum += std::exp(double{logit});
  REQUIRE(result.top_logprobs.size() == 5);
  CHECK(result.top_logprobs[0].token == result.token);
  for (const auto& top : result.top_logprobs) {
    const double expected = double{result.logits[static_cast<std::size_t>(top.token)]} - std::log(sum);
    CHECK(std::abs(top.logprob - expected) < 1e-3);
  }
  CHECK(std::abs(result.confidence - std::exp(result.logprob)) < 1e-4);
}

}  // namespace helios::test
