#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <map>

#include "test/gpu/kernel_cases.hpp"

namespace helios::gpu::test {

namespace {

SampleOut sample_row(const KernelTable& kernels, const std::vector<float>& logits,
                     const SampleParams& params) {
  HeadStats stats;
  Head head{.rows = 1, .logits = const_cast<float*>(logits.data()), .stats = &stats};
  head.w.rows = static_cast<std::int64_t>(logits.size());
  kernels.head_stats(head, 0, 1);
  SampleOut out;
  run(kernels, Sample{logits.data(), 1, static_cast<std::int64_t>(logits.size()), &params, &stats, &out});
  return out;
}

}  // namespace

TEST_CASE("philox: uniform, and a function of seed and counter alone", "[gpu]") {
  CHECK(philox_uniform(1, 2) == philox_uniform(1, 2));
  CHECK(philox_uniform(1, 2) != philox_uniform(2, 1));
  // Random123's known answer for zero key and counter: the first word is 0x6627e8d5.
  CHECK(philox_uniform(0, 0) == static_cast<float>(0x6627e8d5U >> 8) * 0x1p-24F);
  double sum = 0.0;
  for (std::uint64_t i = 0; i < 200'000; ++i) sum += double{philox_uniform(i % 20, i / 20)};
  CHECK(std::abs(sum / 200'000 - 0.5) < 0.0026);  // four standard deviations
}

TEST_CASE("Sample: greedy, penalty and logprobs", "[gpu]") {
  const std::vector<float> logits{1.0F, 3.0F, 2.0F, 3.0F, -1.0F};
  const std::vector<std::int32_t> history{1, 1, 99, -4};
  double sum = 0.0;
  for (const float v : logits) sum += std::exp(double{v});
  for (const KernelTable* kernels : all_kernels()) {
    INFO(kernels->isa);
    const SampleOut plain = sample_row(*kernels, logits, {.n_logprobs = 3});
    CHECK(plain.token == 1);  // the lower id of a tie
    CHECK(std::abs(double{plain.logprob} - (3.0 - std::log(sum))) < 1e-5);
    REQUIRE(plain.top_count == 3);
    CHECK(plain.top_ids[0] == 1);
    CHECK(plain.top_ids[1] == 3);
    CHECK(plain.top_ids[2] == 2);
    const SampleParams penalised{.repetition_penalty = 2.0F, .history = history.data(), .history_length = 4};
    CHECK(sample_row(*kernels, logits, penalised).token == 3);
    std::vector<float> poisoned = logits;
    poisoned[4] = std::nanf("");
    CHECK(sample_row(*kernels, poisoned, {}).token == -1);
  }
}

TEST_CASE("Sample: both bodies draw the same tokens; top_k, top_p and min_p bound the choice", "[gpu]") {
  const auto logits = random_floats(3000, 21, 3.0F);
  for (const KernelTable* kernels : all_kernels()) {
    INFO(kernels->isa);
    int different = 0;
    for (std::uint64_t counter = 0; counter < 60; ++counter) {
      for (SampleParams params :
           {SampleParams{.temperature = 0.8F}, SampleParams{.temperature = 1.0F, .top_k = 5},
            SampleParams{.temperature = 1.5F, .top_p = 0.5F},
            SampleParams{.temperature = 1.0F, .min_p = 0.3F}}) {
        params.seed = 5;
        params.counter = counter;
        const std::int32_t want = sample_row(reference_kernels(), logits, params).token;
        const std::int32_t got = sample_row(*kernels, logits, params).token;
        different += got != want ? 1 : 0;  // a draw that falls on a boundary may
        const SampleOut top = sample_row(*kernels, logits, {.n_logprobs = 20});
        if (params.top_k == 5) CHECK(std::count(top.top_ids, top.top_ids + 5, got) == 1);
        if (params.min_p > 0.0F) {
          CHECK(logits[static_cast<std::size_t>(got)] >=
                logits[static_cast<std::size_t>(top.token)] + std::log(0.3F) - 1e-5F);
        }
      }
    }
    CHECK(different <= 1);
  }
}

TEST_CASE("Sample: frequencies follow the softmax", "[gpu]") {
  const std::vector<float> logits{std::log(0.5F), std::log(0.3F), std::log(0.2F)};
  for (const KernelTable* kernels : all_kernels()) {
    std::map<std::int32_t, int> counts;
    for (std::uint64_t i = 0; i < 4000; ++i) {
      ++counts[sample_row(*kernels, logits, {.temperature = 1.0F, .seed = 3, .counter = i}).token];
    }
    CHECK(std::abs(counts[0] - 2000) < 130);  // four standard deviations
    CHECK(std::abs(counts[1] - 1200) < 120);
    CHECK(std::abs(counts[2] - 800) < 105);
  }
}

}  // namespace helios::gpu::test
