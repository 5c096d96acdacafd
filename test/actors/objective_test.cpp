#include "actors/policy/objective.hpp"

#include <catch2/catch_test_macros.hpp>

#include "test/actors/print_result.hpp"

namespace helios::actors::policy {
namespace {

TEST_CASE("objectives: what is read is what is written", "[actors][policy]") {
  struct Case {
    const char *text, *written;
  };
  const Case cases[] = {
      {"", "throughput"},
      {"  ", "throughput"},
      {"throughput", "throughput"},
      {"response_time,ttft_ms<=200", "response_time,ttft_ms<=200"},
      {" accuracy , perplexity <= 12.5 ", "accuracy,perplexity<=12.5"},
      {"energy,j_per_token<=0.5,agreement>=0.98", "energy,j_per_token<=0.5,agreement>=0.98"},
      {"throughput,tpot_ms<=1e3", "throughput,tpot_ms<=1000"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.text);
    const Result<Objective> objective = parse_objective(c.text);
    REQUIRE(objective);
    CHECK(to_string(*objective) == c.written);
    CHECK(to_string(*parse_objective(c.written)) == c.written);
  }
}

TEST_CASE("objectives: a wrong one says what is wrong", "[actors][policy]") {
  struct Case {
    const char *text, *says;
  };
  const Case cases[] = {
      {"speed", "'speed' is not one of throughput, response_time, accuracy, energy"},
      {",agreement>=0.9", "'' is not one of"},
      {"throughput,", "'' is not a bound; bounds are agreement>=NUMBER"},
      {"throughput,agreement", "'agreement' is not a bound"},
      {"throughput,agreement>0.9", "'agreement>0.9' is not a bound"},
      {"throughput,agreement>", "'agreement>' is not a bound"},
      {"throughput,quality>=0.9", "'quality>=0.9' is not a bound"},
      {"throughput,agreement<=0.9", "agreement is bounded by >=, not by <="},
      {"throughput,ttft_ms>=5", "ttft_ms is bounded by <=, not by >="},
      {"throughput,agreement>=1.5", "agreement needs a number from 0 to 1, not '1.5'"},
      {"throughput,agreement>=", "not ''"},
      {"throughput,agreement>=0.9x", "not '0.9x'"},
      {"throughput,agreement>=nan", "not 'nan'"},
      {"throughput,ttft_ms<=-1", "not '-1'"},
      {"accuracy,perplexity<=0.5", "perplexity needs a number from 1"},
      {"throughput,agreement>=0.9,agreement>=0.8", "agreement is bounded twice"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.text);
    const Result<Objective> objective = parse_objective(c.text);
    REQUIRE_FALSE(objective);
    CHECK(objective.error().code == Errc::bad_request);
    CAPTURE(objective.error().message);
    CHECK(objective.error().message.find(c.says) != std::string::npos);
  }
}

}  // namespace
}  // namespace helios::actors::policy
