// Which (model, depth) serves, and what a breach leads to.

#include "actors/policy/choice.hpp"

#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <random>

#include "actors/policy/breach_decision.hpp"
#include "test/actors/print_result.hpp"

namespace helios::actors::policy {
namespace {

Figure exactly(double value) {
  return {.value = value, .low = value, .high = value, .samples = 1000, .source = Source::live, .age_s = 0};
}

HistoryRow row(int model, int depth, int layers, double tokens_per_s, std::optional<double> agreement = {}) {
  HistoryRow r;
  r.model = model;
  r.depth = depth;
  r.layers = layers;
  r.tokens_per_s = exactly(tokens_per_s);
  if (agreement) r.agreement = exactly(*agreement);
  r.device_bytes = static_cast<std::size_t>(depth) * 1000;
  return r;
}

const std::vector<std::string> kNames{"small", "large"};

/// Small: 6 and 12 of 24; large: 9 and 20 of 32.
std::vector<HistoryRow> table() {
  return {row(0, 6, 24, 400, 0.85),  row(0, 12, 24, 250, 0.95), row(0, 24, 24, 150),
          row(1, 9, 32, 180, 0.92), row(1, 20, 32, 90, 0.97),  row(1, 32, 32, 60)};
}

Objective wanted(const char* text) {
  return *parse_objective(text);
}

TEST_CASE("share figures: Wilson's interval", "[actors][policy]") {
  const Figure none = share_figure(0, 0, Source::live);
  CHECK(none.low == 0.0);
  CHECK(none.high == 1.0);
  const Figure half = share_figure(50, 100, Source::live);  // 0.4038 .. 0.5962 by the formula's tables
  CHECK(half.value == 0.5);
  CHECK(half.low == Catch::Approx(0.4038).margin(5e-4));
  CHECK(half.high == Catch::Approx(0.5962).margin(5e-4));
  const Figure all = share_figure(20, 20, Source::live);
  CHECK(all.high == 1.0);
  CHECK(all.low == Catch::Approx(0.8389).margin(5e-4));
}

TEST_CASE("choice: the best row that the floor and the bounds allow", "[actors][policy]") {
  struct Case {
    const char* objective;
    double floor;
    std::size_t bytes;
    std::size_t best;
  };
  const Case cases[] = {
      {"throughput", 0.90, SIZE_MAX, 1},                  // small at 12: 6 is below the floor
      {"throughput", 0.80, SIZE_MAX, 0},                  // small at 6
      {"throughput", 0.00, SIZE_MAX, 0},                  // helios-paper: no floor
      {"throughput,agreement>=0.96", 0.90, SIZE_MAX, 2},  // full depth of the small one
      {"throughput", 0.90, 10'000, 3},                    // only 9 layers fit
      {"throughput", 0.96, 21'000, 4},                    // large at 20
  };
  const std::vector<HistoryRow> rows = table();
  for (const Case& c : cases) {
    CAPTURE(c.objective, c.floor, c.bytes);
    const auto best = choose(rows, wanted(c.objective),
                             {.min_agreement = c.floor, .breach_max = 0.5, .device_bytes = c.bytes}, kNames);
    REQUIRE(best);
    CHECK(*best == c.best);
  }
}

TEST_CASE("choice: without a known agreement only full depth serves", "[actors][policy]") {
  std::vector<HistoryRow> rows{row(0, 6, 24, 400), row(0, 24, 24, 150)};
  CHECK(*choose(rows, {}, {}, kNames) == 1);
  CHECK(objection(rows[0], {}, {}) == "its agreement with full depth is not known");
  CHECK(*choose(rows, {}, {.min_agreement = 0}, kNames) == 0);
  rows[0].agreement = share_figure(19, 20, Source::profiled);  // 0.95, but only 20 tokens: sure of 0.76
  CHECK(*choose(rows, {}, {}, kNames) == 1);
  rows[0].agreement = share_figure(1900, 2000, Source::profiled);
  CHECK(*choose(rows, {}, {}, kNames) == 0);
  rows[0].breach_rate = exactly(0.6);
  CHECK(*choose(rows, {}, {}, kNames) == 1);
}

TEST_CASE("choice: other goals", "[actors][policy]") {
  std::vector<HistoryRow> rows = table();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    rows[i].ttft_ms = exactly(10.0 * rows[i].depth);
    rows[i].tpot_ms = exactly(1000.0 / rows[i].tokens_per_s->value);
    rows[i].perplexity = exactly(rows[i].model == 0 ? 12.0 : 8.0);
  }
  CHECK(*choose(rows, wanted("response_time"), {}, kNames) == 1);
  CHECK(*choose(rows, wanted("response_time,perplexity<=10"), {}, kNames) == 3);
  CHECK(*choose(rows, wanted("accuracy"), {}, kNames) == 3);  // 8.0 by all of the large one: fewer bytes
  CHECK(*choose(rows, wanted("accuracy,agreement>=0.99"), {}, kNames) == 5);
  for (HistoryRow& r : rows) r.accuracy = exactly(r.model == 0 ? 0.5 : 0.45);
  CHECK(*choose(rows, wanted("accuracy"), {}, kNames) == 2);  // tasks known for all: they decide
  // Nobody measured energy: a goal that cannot be told apart still serves, deepest first.
  CHECK(*choose(rows, wanted("energy"), {}, kNames) == 5);
}

TEST_CASE("choice: what cannot be met names the nearest figures", "[actors][policy]") {
  std::vector<HistoryRow> rows = table();
  for (HistoryRow& r : rows) r.ttft_ms = exactly(10.0 * r.depth);
  const auto late = choose(rows, wanted("throughput,ttft_ms<=50"), {}, kNames);
  REQUIRE_FALSE(late);
  CHECK(late.error().code == Errc::no_model);
  CHECK(late.error().message ==
        "objective 'throughput,ttft_ms<=50' cannot be met: the nearest ttft_ms is 60 (small at 6/24)");
  const auto unknown = choose(rows, wanted("throughput,j_per_token<=1"), {}, kNames);
  REQUIRE_FALSE(unknown);
  CHECK(unknown.error().message.find("j_per_token is not known for any model") != std::string::npos);
  CHECK_FALSE(choose({}, {}, {}, kNames));
}

TEST_CASE("breach: the cheaper of loading more and switching", "[actors][policy]") {
  std::vector<HistoryRow> rows = table();
  rows[0].agreement = exactly(0.93);
  for (HistoryRow& r : rows) r.load_s = 0.1 * r.depth;
  rows[0].load_s = 0;  // it serves
  const BreachState state{.current = 0, .tokens_expected = 1000, .prefill_s_per_switch = 0.5, .left = {}};
  const BreachDecision both = decide_breach(rows, {}, {}, state);
  REQUIRE(both.load_more);
  REQUIRE(both.switch_model);
  CHECK(both.load_more->row == 1);
  CHECK(both.load_more->seconds == Catch::Approx(1.2 + 4.0));
  CHECK(both.switch_model->row == 3);
  CHECK(both.switch_model->seconds == Catch::Approx(0.9 + 0.5 + 1000.0 / 180));
  CHECK(both.remedy == Remedy::load_more);
  CHECK(both.row == 1);

  rows[1].load_s = 10;  // a slow disk under the small model
  const BreachDecision away = decide_breach(rows, {}, {}, state);
  CHECK(away.remedy == Remedy::switch_model);
  CHECK(away.row == 3);
  // The load goes on beside generation: it costs nothing again.
  BreachRules hidden;
  hidden.load_hidden = 1;
  CHECK(decide_breach(rows, {}, hidden, state).remedy == Remedy::load_more);

  BreachRules paper;
  paper.all_layers = true;
  paper.choice.min_agreement = 0;
  CHECK(decide_breach(rows, {}, paper, state).load_more->row == 2);

  BreachRules only_load, only_switch, neither;
  only_load.may_switch = only_switch.may_load = neither.may_load = neither.may_switch = false;
  CHECK(decide_breach(rows, {}, only_load, state).remedy == Remedy::load_more);
  CHECK(decide_breach(rows, {}, only_switch, state).remedy == Remedy::switch_model);
  const BreachDecision stays = decide_breach(rows, {}, neither, state);
  CHECK(stays.remedy == Remedy::stay);
  CHECK(stays.row == 0);
}

TEST_CASE("breach: no ping-pong whatever the costs", "[actors][policy]") {
  std::mt19937 chance(7);
  const auto uniform = [&](double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(chance);
  };
  for (int round = 0; round < 3000; ++round) {
    std::vector<HistoryRow> rows;
    const int models = 1 + static_cast<int>(chance() % 4);
    for (int model = 0; model < models; ++model) {
      const int layers = 8 + static_cast<int>(chance() % 24);
      for (int depth = 2; depth < layers; depth += 1 + static_cast<int>(chance() % 8))
        rows.push_back(row(model, depth, layers, uniform(1, 500), uniform(0.7, 1)));
      rows.push_back(row(model, layers, layers, uniform(1, 500)));
      for (HistoryRow& r : rows) r.load_s = uniform(0, 20);
    }
    BreachState state{.current = chance() % rows.size(),
                      .tokens_expected = uniform(0, 10'000),
                      .prefill_s_per_switch = uniform(0, 5),
                      .left = std::vector<bool>(static_cast<std::size_t>(models))};
    std::vector<std::pair<int, int>> visited{{rows[state.current].model, rows[state.current].depth}};
    for (std::size_t decisions = 0;; ++decisions) {
      REQUIRE(decisions <= rows.size());
      BreachRules rules;
      rules.load_hidden = uniform(0, 1);
      const BreachDecision decision = decide_breach(rows, {}, rules, state);
      if (decision.remedy == Remedy::stay) break;
      if (decision.remedy == Remedy::switch_model)
        state.left[static_cast<std::size_t>(rows[state.current].model)] = true;
      state.current = decision.row;
      const std::pair<int, int> here{rows[state.current].model, rows[state.current].depth};
      CHECK(std::find(visited.begin(), visited.end(), here) == visited.end());
      visited.push_back(here);
    }
  }
}

}  // namespace
}  // namespace helios::actors::policy
