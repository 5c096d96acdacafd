#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <random>

#include "actors/policy/admission.hpp"
#include "actors/policy/breach_window.hpp"
#include "actors/policy/depth_choice.hpp"
#include "actors/policy/residency.hpp"
#include "actors/policy/step_composer.hpp"
#include "actors/policy/step_time_model.hpp"
#include "test/actors/print_result.hpp"

namespace helios::actors::policy {
namespace {

using namespace std::chrono_literals;

TEST_CASE("breach window: trips only when full and over the share", "[actors][policy]") {
  struct Case {
    int window_min, running, tokens, breach_every;  // every k-th token is a breach
    bool trips;
  };
  const Case cases[] = {
      {100, 1, 99, 1, false},                             // not full
      {100, 1, 100, 1, true},                             // all breaches
      {100, 1, 100, 2, false},                            // exactly half is allowed
      {100, 20, 159, 1, false},                           // 8 x 20 = 160 tokens in the window
      {100, 20, 160, 1, true},  {100, 12, 100, 1, true},  // 96 < 100
      {1, 0, 1, 1, true},
  };
  for (const Case& c : cases) {
    CAPTURE(c.window_min, c.running, c.tokens, c.breach_every);
    BreachWindow window(c.window_min, 0.5);
    for (int i = 0; i < c.tokens; ++i) window.add(i % c.breach_every == 0, c.running);
    CHECK(window.tripped() == c.trips);
    window.reset();
    CHECK_FALSE(window.tripped());
    CHECK(window.rate() == 0.0);
  }
}

TEST_CASE("breach window: forgets what left the window", "[actors][policy]") {
  BreachWindow window(10, 0.5);
  for (int i = 0; i < 10; ++i) window.add(true, 1);
  REQUIRE(window.tripped());
  for (int i = 0; i < 5; ++i) window.add(false, 1);
  CHECK(window.rate() == 0.5);
  CHECK_FALSE(window.tripped());
  CHECK(window.size() == 10);
}

TEST_CASE("policy words", "[actors][policy]") {
  CHECK(*parse_policy("", Policy::greedy) == Policy::greedy);
  CHECK(*parse_policy("full", Policy::greedy) == Policy::full);
  CHECK(*parse_policy("greedy", Policy::full) == Policy::greedy);
  for (const char* planned : {"per_token", "speculative", "helios", "helios-paper"}) {
    const auto result = parse_policy(planned, Policy::full);
    REQUIRE_FALSE(result);
    CHECK(result.error().code == Errc::unsupported);
    CHECK(result.error().message.find(planned) != std::string::npos);
  }
  CHECK(parse_policy("Full", Policy::full).error().code == Errc::bad_request);
}

TEST_CASE("depth of a request", "[actors][policy]") {
  const int exits[] = {6, 12, 18};
  const DepthOffer plain{.layers = 30, .depth = 18, .feasible = 18, .exits = {}};
  const DepthOffer with_exits{.layers = 30, .depth = 12, .feasible = 18, .exits = exits};
  const DepthOffer whole{.layers = 30, .depth = 30, .feasible = 30, .exits = {}};

  CHECK(choose_depth(plain, std::nullopt, Policy::greedy, false)->depth == 18);
  CHECK(choose_depth(plain, std::nullopt, Policy::greedy, true)->pinned);  // named by the request
  CHECK_FALSE(choose_depth(plain, std::nullopt, Policy::greedy, false)->pinned);
  CHECK(choose_depth(whole, std::nullopt, Policy::full, false)->depth == 30);
  CHECK(choose_depth(whole, 7, Policy::greedy, false)->depth == 7);
  CHECK(choose_depth(whole, 7, Policy::greedy, false)->pinned);
  CHECK(choose_depth(with_exits, 6, Policy::greedy, false)->depth == 6);

  CHECK(choose_depth(plain, std::nullopt, Policy::full, true).error().code == Errc::no_model);
  CHECK(choose_depth(plain, 0, Policy::greedy, false).error().code == Errc::bad_request);
  CHECK(choose_depth(plain, 31, Policy::greedy, false).error().code == Errc::bad_request);
  const auto deeper = choose_depth(plain, 24, Policy::greedy, false);
  REQUIRE_FALSE(deeper);
  CHECK(deeper.error().code == Errc::no_model);
  CHECK(deeper.error().message.find("is 18") != std::string::npos);
  const auto unknown = choose_depth(with_exits, 7, Policy::greedy, false);
  REQUIRE_FALSE(unknown);
  CHECK(unknown.error().message.find("is 6") != std::string::npos);
}

TEST_CASE("next exit to load", "[actors][policy]") {
  const int exits[] = {6, 12, 18};
  CHECK(next_exit(6, exits, 30) == 12);
  CHECK(next_exit(7, exits, 30) == 12);
  CHECK(next_exit(18, exits, 30) == 30);
  CHECK(next_exit(5, {}, 30) == 30);
  CHECK(next_exit(30, exits, 30) == std::nullopt);
  CHECK(next_exit(29, {}, 30) == 30);
}

TEST_CASE("minimum residency needs both tokens and time", "[actors][policy]") {
  const Residency rule;
  CHECK(may_decide(rule, 512, 1s, 100ms));
  CHECK_FALSE(may_decide(rule, 511, 1h, 100ms));
  CHECK_FALSE(may_decide(rule, 100000, 999ms, 100ms));
  CHECK(may_decide(rule, 512, 0s, 0s));
}

GenerateRequest text_request(std::string text) {
  GenerateRequest request;
  request.prompt = PromptText(std::move(text));
  request.sampling.max_tokens = 8;
  return request;
}

TEST_CASE("admission: before tokenizing", "[actors][policy]") {
  AdmissionBounds bounds;
  bounds.prompt_bytes_max = 16;
  bounds.live_requests_max = 2;
  CHECK(check_request(bounds, {0, 0}, text_request("hello")));
  CHECK(check_request(bounds, {2, 0}, text_request("hello")).error().code == Errc::busy);
  CHECK(check_request(bounds, {0, 0}, text_request("")).error().code == Errc::bad_request);
  CHECK(check_request(bounds, {0, 0}, text_request(std::string(17, 'x'))).error().code == Errc::too_long);
  GenerateRequest chat = text_request("x");
  chat.prompt = ChatTurns{};
  CHECK(check_request(bounds, {0, 0}, chat).error().code == Errc::bad_request);
  GenerateRequest confident = text_request("x");
  confident.min_confidence = std::nanf("");
  CHECK(check_request(bounds, {0, 0}, confident).error().code == Errc::bad_request);
  GenerateRequest stops = text_request("x");
  stops.sampling.stop = {""};
  CHECK(check_request(bounds, {0, 0}, stops).error().code == Errc::bad_request);
  stops.sampling.stop.assign(17, "a");
  CHECK(check_request(bounds, {0, 0}, stops).error().code == Errc::bad_request);
  GenerateRequest hot = text_request("x");
  hot.sampling.temperature = -1;
  CHECK(check_request(bounds, {0, 0}, hot).error().code == Errc::bad_request);
}

TEST_CASE("admission: with counts", "[actors][policy]") {
  AdmissionBounds bounds;
  bounds.live_prompt_tokens_max = 1000;
  CHECK(check_tokens(bounds, {0, 0}, 100, 28, 128, true));
  CHECK(check_tokens(bounds, {0, 0}, 0, 1, 128, true).error().code == Errc::bad_request);
  const auto context = check_tokens(bounds, {0, 0}, 100, 29, 128, true);
  REQUIRE_FALSE(context);
  CHECK(context.error().code == Errc::too_long);
  CHECK(context.error().message.find("100") != std::string::npos);
  CHECK(context.error().message.find("128") != std::string::npos);
  CHECK(check_tokens(bounds, {0, 0}, 100, 28, 1 << 20, false).error().code == Errc::too_long);
  CHECK(check_tokens(bounds, {1, 950}, 51, 1, 1 << 20, true).error().code == Errc::busy);
}

/// A device whose steps cost what the model's terms say.
double cost(const StepWork& work) {
  return 0.001 + 0.010 * work.touched_layers() / work.layers() + 0.0005 * work.layer_rows() / work.layers() +
         1e-6 * work.layer_context() / work.layers() + 0.0004 * work.outputs();
}

TEST_CASE("step time model: learns a linear device", "[actors][policy]") {
  StepTimeModel model;
  std::mt19937 random(7);
  for (int i = 0; i < 200; ++i) {
    StepWork work(30);
    work.add(0, 18 + static_cast<int>(random() % 13), static_cast<int>(random() % 500),
             1 + static_cast<int>(random() % 60));
    work.add_outputs(1 + static_cast<int>(random() % 32));
    model.observe(work, cost(work));
  }
  REQUIRE(model.trained());
  for (int rows : {1, 8, 32, 100}) {
    StepWork work(30);
    work.add(0, 30, 200, rows);
    work.add_outputs(rows);
    CAPTURE(rows);
    CHECK(std::abs(model.predict_seconds(work) / cost(work) - 1) < 0.05);
  }
}

TEST_CASE("step time model: more work is never predicted faster", "[actors][policy]") {
  StepTimeModel model;
  for (int i = 0; i < 20; ++i) {
    StepWork work(8);
    work.add(0, 8, 0, 1 + i);
    model.observe(work, 0.01 - 0.0001 * i);  // noise that points the wrong way
  }
  double before = 0;
  for (int rows = 1; rows < 64; ++rows) {
    StepWork work(8);
    work.add(0, 8, 0, rows);
    CHECK(model.predict_seconds(work) >= before);
    before = model.predict_seconds(work);
  }
}

StepTimeModel trained_model(int layers) {
  StepTimeModel model;
  for (int i = 0; i < 100; ++i) {
    StepWork work(layers);
    work.add(0, 1 + i % layers, 10 * (i % 20), 1 + (i * 7) % 50);
    work.add_outputs(i % 9);
    model.observe(work, cost(work));
  }
  return model;
}

TEST_CASE("compose: decode rows always go in, prefill only as the budget allows", "[actors][policy]") {
  const StepTimeModel model = trained_model(30);
  std::vector<StepCandidate> candidates(
      4, StepCandidate{.depth = 30, .position = 100, .pending = 1, .decoding = true});
  candidates.push_back({.depth = 30, .position = 0, .pending = 400});
  const StepLimits limits{.layers = 30, .rows_max = 256};
  const ComposedStep step = compose_step(candidates, limits, model);
  for (int i = 0; i < 4; ++i) CHECK(step.shares[static_cast<std::size_t>(i)].rows == 1);
  CHECK(step.shares[4].rows > 0);
  CHECK(step.shares[4].rows < 252);
  StepWork decode(30);
  for (int i = 0; i < 4; ++i) decode.add(0, 30, 100, 1);
  decode.add_outputs(4);
  CHECK(cost(step.work) <= 2.0 * cost(decode));
}

TEST_CASE("compose: without decode rows a prefill takes all the rows", "[actors][policy]") {
  const StepLimits limits{.layers = 30, .rows_max = 256};
  std::vector<StepCandidate> candidates{{.depth = 30, .position = 0, .pending = 400},
                                        {.depth = 30, .position = 0, .pending = 10}};
  const ComposedStep step = compose_step(candidates, limits, StepTimeModel{});
  CHECK(step.shares[0].rows == 256);
  CHECK(step.shares[1].rows == 0);
}

TEST_CASE("compose: an untrained model is careful", "[actors][policy]") {
  const StepLimits limits{.layers = 30, .rows_max = 256};
  std::vector<StepCandidate> candidates{{.depth = 30, .position = 9, .pending = 1, .decoding = true},
                                        {.depth = 30, .position = 0, .pending = 400}};
  const ComposedStep step = compose_step(candidates, limits, StepTimeModel{});
  CHECK(step.shares[0].rows == 1);
  CHECK(step.shares[1].rows <= 1);
}

TEST_CASE("compose: catch-up runs in chunks and its end moves the row", "[actors][policy]") {
  const StepTimeModel model = trained_model(30);
  StepLimits limits{.layers = 30, .rows_max = 256};
  std::vector<StepCandidate> candidates{
      {.depth = 18, .target = 30, .caught_up = 0, .position = 500, .pending = 1, .decoding = true}};
  int steps = 0, filled = 0, position = 500;
  bool moved = false;
  while (!moved) {
    REQUIRE(++steps < 600);
    candidates[0].caught_up = filled;
    candidates[0].position = position;
    const ComposedStep step = compose_step(candidates, limits, model);
    REQUIRE(step.shares[0].rows == 1);
    filled += step.shares[0].catch_up;
    moved = step.shares[0].deepen;
    if (moved) {
      CHECK(filled == position);
    } else {
      limits.force_chunk = step.starved;
    }
    ++position;
  }
  CHECK(steps > 1);
}

TEST_CASE("compose: a chunk that never fits still gets a row when forced", "[actors][policy]") {
  const StepTimeModel model = trained_model(30);
  std::vector<StepCandidate> candidates{
      {.depth = 1, .target = 30, .caught_up = 0, .position = 500, .pending = 1, .decoding = true}};
  StepLimits limits{.layers = 30, .rows_max = 256};
  const ComposedStep quiet = compose_step(candidates, limits, model);
  CHECK(quiet.starved);
  CHECK(quiet.shares[0].catch_up == 0);
  limits.force_chunk = true;
  CHECK(compose_step(candidates, limits, model).shares[0].catch_up >= 1);
}

TEST_CASE("compose: a sequence without computed rows takes the new depth at once", "[actors][policy]") {
  std::vector<StepCandidate> candidates{
      {.depth = 18, .target = 30, .caught_up = 0, .position = 0, .pending = 20}};
  const ComposedStep step = compose_step(candidates, {.layers = 30, .rows_max = 64}, StepTimeModel{});
  CHECK(step.shares[0].deepen);
  CHECK(step.shares[0].catch_up == 0);
  CHECK(step.shares[0].rows == 20);
}

TEST_CASE("compose: the budget of rows is never passed", "[actors][policy]") {
  std::mt19937 random(3);
  const StepTimeModel model = trained_model(12);
  for (int round = 0; round < 300; ++round) {
    std::vector<StepCandidate> candidates;
    for (std::size_t i = 0, n = random() % 40; i < n; ++i) {
      StepCandidate c;
      c.depth = 1 + static_cast<int>(random() % 12);
      c.target = random() % 3 == 0 ? 12 : 0;
      c.position = static_cast<int>(random() % 50);
      c.caught_up = c.position == 0 ? 0 : static_cast<int>(random() % static_cast<unsigned>(c.position));
      c.decoding = c.position > 0 && random() % 2 == 0;
      c.pending = c.decoding ? 1 : 1 + static_cast<int>(random() % 90);
      candidates.push_back(c);
    }
    const StepLimits limits{.layers = 12, .rows_max = 24, .force_chunk = random() % 4 == 0};
    const ComposedStep step = compose_step(candidates, limits, model);
    int rows = 0;
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      const StepShare& s = step.shares[i];
      rows += s.catch_up + s.rows;
      CHECK(s.rows <= candidates[i].pending);
      CHECK(s.catch_up <= candidates[i].position - candidates[i].caught_up);
      if (candidates[i].target <= candidates[i].depth) CHECK(s.catch_up == 0);
      if (s.deepen) CHECK(s.catch_up == candidates[i].position - candidates[i].caught_up);
    }
    CHECK(rows <= limits.rows_max);
  }
}

}  // namespace
}  // namespace helios::actors::policy
