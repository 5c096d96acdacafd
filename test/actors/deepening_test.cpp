#include <algorithm>
#include <numeric>

#include "actors/policy/step_time_model.hpp"
#include "test/actors/rig.hpp"

namespace helios::test {
namespace {

using namespace std::chrono_literals;
using actors::FinishReason;

/// What a model with all layers says at each recorded depth on the same prefix: every token by itself, its KV
/// built directly.
std::vector<std::int32_t> reference_at_depths(const actors::GenerateRequest& request,
                                              const std::vector<std::int32_t>& ids,
                                              const std::vector<int>& depths) {
  Rig rig;
  std::vector<std::int32_t> out;
  actors::PromptIds prefix = std::get<actors::PromptIds>(request.prompt);
  for (std::size_t k = 0; k < ids.size(); ++k) {
    actors::GenerateRequest one = request;
    one.prompt = prefix;
    one.exit_layer = depths[k];
    one.sampling.max_tokens = 1;
    const Outcome result = rig.run(one);
    REQUIRE_FALSE(result.refused);
    out.push_back(result.ids().at(0));
    prefix.push_back(ids[k]);
  }
  return out;
}

std::vector<int> depths_of(const Outcome& out) {
  std::vector<int> depths;
  for (const auto& token : out.tokens) depths.push_back(token.depth);
  return depths;
}

/// Logprobs asked, so that every token comes with its depth.
actors::GenerateRequest watched(int n, int salt, int max_tokens) {
  auto request = request_of(n, salt, max_tokens);
  request.sampling.logprobs = 1;
  return request;
}

TEST_CASE("deepening: in mid-generation no token is dropped and all equal the reference at their depths",
          "[actors]") {
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    CAPTURE(seed);
    Rig rig(RigOptions{.seed = seed, .exit_layer = 2});
    const auto request = watched(9, static_cast<int>(seed), 40);
    const auto other_request = watched(30, static_cast<int>(seed) + 50, 30);
    auto out = rig.start(request);
    auto other = rig.start(other_request, 4ms);
    rig.run_until([&] { return out->last_seq >= 5; });
    const auto stats = rig.model_stats();
    CHECK(stats.resident == 2);
    const auto depth = rig.server->set_depth("", stats.layers, 10s);
    REQUIRE(depth);
    CHECK(depth->resident == stats.layers);
    rig.settle();
    for (const auto& [o, r] : {std::pair{out, request}, std::pair{other, other_request}}) {
      REQUIRE(o->finish.reason == FinishReason::length);
      CHECK(o->finishes == 1);
      CHECK_FALSE(o->gap);
      const auto depths = depths_of(*o);
      REQUIRE(depths.size() == o->ids().size());
      CHECK(depths.front() == 2);
      CHECK(depths.back() == stats.layers);
      CHECK(std::is_sorted(depths.begin(), depths.end()));
      CHECK(o->ids() == reference_at_depths(r, o->ids(), depths));
      std::map<int, int> histogram;
      for (const int d : depths) ++histogram[d];
      CHECK(o->finish.usage.exit_histogram == histogram);
    }
    rig.check_balanced();
  }
}

TEST_CASE("deepening: in two moves, the second asked while the first loads", "[actors]") {
  Rig rig(RigOptions{.seed = 3, .exit_layer = 1});
  const auto request = watched(12, 5, 60);
  auto out = rig.start(request);
  rig.run_until([&] { return out->last_seq >= 4; });
  const int layers = rig.model_stats().layers;
  REQUIRE(rig.server->set_depth("tiny", 3, 10s));
  REQUIRE(rig.server->set_depth("tiny", layers, 10s));
  rig.settle();
  REQUIRE(out->finish.reason == FinishReason::length);
  CHECK(out->ids() == reference_at_depths(request, out->ids(), depths_of(*out)));
  CHECK(rig.model_stats().resident == layers);
  rig.check_balanced();
}

TEST_CASE("deepening: only the layers in use are on the device", "[actors]") {
  Rig shallow(RigOptions{.exit_layer = 2});
  Rig whole;
  CHECK(shallow.model_stats().weight_bytes < whole.model_stats().weight_bytes);
  CHECK(shallow.model_stats().resident == 2);
  const auto shallow_bytes = shallow.model_stats().weight_bytes;
  REQUIRE(shallow.server->set_depth("", whole.model_stats().layers, 10s));
  CHECK(shallow.model_stats().weight_bytes == whole.model_stats().weight_bytes);
  REQUIRE(shallow.server->set_depth("", 2, 10s));
  shallow.settle();
  CHECK(shallow.model_stats().resident == 2);
  CHECK(shallow.model_stats().weight_bytes == shallow_bytes);
}

TEST_CASE("deepening: becoming shallower is for new sequences; layers go when their last one ends",
          "[actors]") {
  Rig rig(RigOptions{.seed = 4, .exit_layer = 2});
  const int layers = rig.model_stats().layers;
  REQUIRE(rig.server->set_depth("", layers, 10s));
  auto old = rig.start(watched(5, 1, 60));
  rig.run_until([&] { return old->last_seq >= 4; });
  REQUIRE(rig.server->set_depth("", 2, 10s));
  auto fresh = rig.start(watched(5, 2, 10));
  rig.run_until([&] { return fresh->finishes > 0; });
  CHECK(depths_of(*fresh) == std::vector<int>(10, 2));
  CHECK(rig.model_stats().resident == layers);
  rig.settle();
  CHECK(depths_of(*old) == std::vector<int>(60, layers));
  CHECK(rig.model_stats().resident == 2);
  rig.check_balanced();
}

TEST_CASE("deepening: a pinned request stays where it is", "[actors]") {
  Rig rig(RigOptions{.exit_layer = 2});
  auto request = watched(5, 1, 40);
  request.exit_layer = 1;
  auto out = rig.start(request);
  rig.run_until([&] { return out->last_seq >= 4; });
  REQUIRE(rig.server->set_depth("", rig.model_stats().layers, 10s));
  rig.settle();
  CHECK(depths_of(*out) == std::vector<int>(40, 1));
}

TEST_CASE("deepening: a full model that was made shallow serves at its depth, unless full depth is asked for",
          "[actors]") {
  Rig rig;
  const int layers = rig.model_stats().layers;
  CHECK(depths_of(rig.run(watched(9, 1, 3))) == std::vector<int>(3, layers));
  REQUIRE(rig.server->set_depth("", 2, 10s));
  rig.settle();
  const Outcome shallow = rig.run(watched(9, 1, 3));
  REQUIRE_FALSE(shallow.refused);
  CHECK(depths_of(shallow) == std::vector<int>(3, 2));
  auto full = watched(9, 1, 3);
  full.policy = "full";
  const Outcome refused = rig.run(full);
  REQUIRE(refused.refused);
  CHECK(refused.refused->code == Errc::no_model);
  REQUIRE(rig.server->set_depth("", layers, 10s));
  rig.settle();
  CHECK(depths_of(rig.run(watched(9, 1, 3))) == std::vector<int>(3, layers));
  rig.check_balanced();
}

TEST_CASE("deepening: bad layers are refused", "[actors]") {
  Rig rig(RigOptions{.exit_layer = 2});
  for (const int layer : {0, -3, 1000}) {
    const auto depth = rig.server->set_depth("", layer, 10s);
    REQUIRE_FALSE(depth);
    CHECK(depth.error().code == Errc::bad_request);
  }
  CHECK(rig.server->set_depth("nobody", 2, 10s).error().code == Errc::no_model);
  CHECK(rig.server->set_depth("", 2, 10s)->resident == 2);
}

TEST_CASE("deepening: the breach counter loads the next exit by itself", "[actors]") {
  Rig rig(RigOptions{.exit_layer = 2, .tweak = [](actors::ServerOptions& o) {
                       o.confidence_threshold = 1.5F;  // above any probability: every token is a breach
                       o.breach_window = 20;
                       o.residency.tokens_min = 30;
                     }});
  const int layers = rig.model_stats().layers;
  auto out = rig.start(watched(5, 1, 120));
  rig.settle();
  const auto depths = depths_of(*out);
  REQUIRE(depths.size() == 120);
  CHECK(depths.front() == 2);
  CHECK(depths.back() == layers);
  CHECK(std::count(depths.begin(), depths.end(), 2) >= 30);
  CHECK(out->finish.usage.breaches == std::count(depths.begin(), depths.end(), 2));
  CHECK(rig.model_stats().depth == layers);
}

TEST_CASE("deepening: pinned tokens below the threshold load nothing", "[actors]") {
  Rig rig(RigOptions{.exit_layer = 2, .tweak = [](actors::ServerOptions& o) {
                       o.confidence_threshold = 1.5F;
                       o.breach_window = 20;
                       o.residency.tokens_min = 30;
                     }});
  auto request = watched(5, 1, 120);
  request.exit_layer = 2;
  const Outcome out = rig.run(request);
  CHECK(out.finish.usage.breaches == 120);
  rig.settle();
  CHECK(rig.model_stats().depth == 2);
}

/// A device whose steps cost as a real one's: weights of touched layers, rows, head.
runtime::Duration step_cost(const gpu::CommandList& commands) {
  double us = 50;
  for (const auto& op : commands) {
    std::visit(
        [&](const auto& o) {
          if constexpr (requires { o.projections; }) us += 30.0 + 4.0 * static_cast<double>(o.rows);
        },
        op);
  }
  return std::chrono::nanoseconds(static_cast<std::int64_t>(us * 1000));
}

TEST_CASE(
    "deepening: steps with decode rows stay within the stretch while layers load and sequences catch up",
    "[actors]") {
  RigOptions options{.seed = 11,
                     .exit_layer = 4};  // the other two fit beside a decode step within the stretch
  options.device.cost = step_cost;
  options.device.copy_bytes_per_second = 2e7;  // slow enough that many steps run beside the load
  Rig rig(std::move(options));
  auto out = rig.start(watched(60, 1, 160));
  rig.run_until([&] { return out->last_seq >= 20; });
  REQUIRE(rig.server->set_depth("", rig.model_stats().layers, 60s));
  rig.settle();
  const auto depths = depths_of(*out);
  REQUIRE(depths.size() == out->times.size());
  // Quiet decode steps at either depth, by their gaps; catch-up happens between the last shallow and the
  // first deep one.
  std::map<int, std::vector<runtime::Duration>> gaps;
  for (std::size_t i = 1; i < depths.size(); ++i)
    gaps[depths[i]].push_back(out->times[i] - out->times[i - 1]);
  REQUIRE(gaps.size() == 2);
  for (auto& [depth, list] : gaps) {
    std::vector<runtime::Duration> sorted = list;
    std::sort(sorted.begin(), sorted.end());
    const runtime::Duration quiet = sorted[sorted.size() / 2];
    CAPTURE(depth, quiet.count(), sorted.back().count());
    CHECK(sorted[sorted.size() * 95 / 100] <= 2 * quiet);
    CHECK(sorted.back() <= 2 * quiet);
  }
}

}  // namespace
}  // namespace helios::test
