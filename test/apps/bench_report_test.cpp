#include "apps/bench_report.hpp"

#include <boost/json.hpp>
#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>

using namespace helios::apps;
using namespace std::chrono_literals;

namespace {

RequestRecord record(std::chrono::milliseconds sent, std::vector<std::chrono::milliseconds> tokens,
                     int prompt) {
  RequestRecord r;
  const BenchTime zero{};
  r.sent = zero + sent;
  for (const auto t : tokens) r.token_times.push_back(zero + t);
  r.done = r.token_times.back();
  r.prompt_tokens = prompt;
  r.completion_tokens = static_cast<int>(tokens.size());
  r.exit_histogram = {{18, r.completion_tokens}};
  r.text_hash = static_cast<std::uint64_t>(prompt);
  return r;
}

}  // namespace

TEST_CASE("the report's figures follow their definitions", "[apps]") {
  // Two streams: first tokens at 100 and 200 ms, five tokens each, then one every 50 ms.
  const std::vector<RequestRecord> records{record(0ms, {100ms, 150ms, 200ms, 250ms, 300ms}, 32),
                                           record(0ms, {200ms, 250ms, 300ms, 350ms, 400ms}, 32)};
  const boost::json::object report = bench_report(records, 2, true);
  CHECK(report.at("errors").as_int64() == 0);
  CHECK(report.at("prefill_tokens_per_s").as_double() == Catch::Approx(64 / 0.2));
  CHECK(report.at("decode_tokens_per_s").as_double() == Catch::Approx(6 / 0.2));  // tokens after 200 ms
  CHECK(report.at("ttft_ms").at("median").as_double() == Catch::Approx(150));
  CHECK(report.at("tpot_ms").at("mean").as_double() == Catch::Approx(50));
  CHECK(report.at("itl_ms").at("p99").as_double() == Catch::Approx(50));
  CHECK(report.at("e2e_ms").at("mean").as_double() == Catch::Approx(350));
  CHECK(report.at("output_tokens_per_s").as_double() == Catch::Approx(25));
  CHECK(report.at("exit_histogram").at("18").as_int64() == 10);
}

TEST_CASE("failed requests are counted and change no latency", "[apps]") {
  std::vector<RequestRecord> records{record(0ms, {100ms, 150ms}, 8)};
  const boost::json::object alone = bench_report(records, 1, true);
  RequestRecord failed;
  failed.error = "BUSY retry_ms=100";
  records.push_back(failed);
  const boost::json::object report = bench_report(records, 1, true);
  CHECK(report.at("errors").as_int64() == 1);
  CHECK(report.at("first_error").as_string() == "BUSY retry_ms=100");
  CHECK(report.at("ttft_ms") == alone.at("ttft_ms"));
  CHECK(report.at("token_hash") == alone.at("token_hash"));
}
