#include <cmath>

#include "test/model/model_fixture.hpp"

namespace helios::test {

using gpu::DataType;

namespace {

struct Deepened {
  std::vector<std::int32_t> moved, direct;  // ids after the move
  float difference = 0.0F;                  // largest, of the logits right after it
};

/// Decodes some tokens at depth 3, deepens to 6, goes on; against a sequence whose every position ran 6
/// layers.
Deepened deepen(DataType weights, DataType rows, DataType kv, int chunk) {
  const TempFile path(".gguf");
  write_tiny_model(path.path(), {.type = weights, .seed = 5});
  Loaded l =
      Loaded::make(path.path(), 6, {.kv_type = kv, .row_type = rows, .max_rows = 64, .max_outputs = 2});
  model::Sequential moved(*l.transformer, 3), direct(*l.transformer, 6);
  std::vector<std::int32_t> ids = some_ids(21, 3);
  const auto shallow = must(moved.generate(ids, greedy(12)));
  ids.insert(ids.end(), shallow.begin(), shallow.end());
  must(moved.catch_up(6, chunk));
  Deepened out;
  const auto a = must(moved.feed(std::span(ids).last(1), {}, true));
  const std::vector<float> moved_logits(a.logits.begin(), a.logits.end());
  const auto b = must(direct.feed(ids, {}, true));
  for (std::size_t i = 0; i < moved_logits.size(); ++i) {
    out.difference = std::max(out.difference, std::abs(moved_logits[i] - b.logits[i]));
  }
  CHECK(a.token == b.token);
  const std::vector<std::int32_t> next{a.token};
  out.moved = must(moved.generate(next, greedy(20)));
  out.direct = must(direct.generate(next, greedy(20)));
  return out;
}

}  // namespace

TEST_CASE("Catch-up: with F32 rows it equals having run the layers at once, bit for bit", "[model]") {
  for (const DataType weights : {DataType::f32, DataType::q4_1, DataType::q8_0}) {
    for (const DataType kv : {DataType::f32, DataType::f16}) {
      for (const int chunk : {0, 5}) {
        const Deepened result = deepen(weights, DataType::f32, kv, chunk);
        CHECK(result.difference == 0.0F);
        CHECK(result.moved == result.direct);
      }
    }
  }
}

TEST_CASE("Catch-up: with F16 rows it is near", "[model]") {
  const Deepened result = deepen(DataType::f32, DataType::f16, DataType::f32, 0);
  CHECK(result.difference > 0.0F);  // F16 does lose something: the test above proves F32 rows are used
  CHECK(result.difference < 0.05F);
}

TEST_CASE("Catch-up: a sequence moves while its neighbours decode, within one step too", "[model]") {
  const TempFile path(".gguf");
  write_tiny_model(path.path(), {.type = DataType::q4_1, .seed = 9});
  Loaded l = Loaded::make(path.path(), 6, {.row_type = DataType::f32, .max_rows = 64, .max_outputs = 4});
  const auto ids = some_ids(11, 4);
  model::Sequential alone(*l.transformer, 6), neighbour_alone(*l.transformer, 3);
  const auto expected = must(alone.feed(ids, {}, true));
  const std::vector<float> expected_logits(expected.logits.begin(), expected.logits.end());
  const auto neighbour_expected = must(neighbour_alone.feed(ids));

  model::Sequential moved(*l.transformer, 3), neighbour(*l.transformer, 3);
  must(moved.feed(std::span(ids).first(10)));
  must(neighbour.feed(std::span(ids).first(10)));
  must(l.transformer->kv_cache()->reserve(moved.sequence(), 11, {3, 6}));
  must(l.transformer->kv_cache()->reserve(moved.sequence(), 11, {0, 6}));
  must(l.transformer->kv_cache()->reserve(neighbour.sequence(), 11, {0, 3}));
  model::StepPlan plan;
  // Deliberately in an order that breaks every layer's rows into several runs.
  plan.rows.push_back({&neighbour.sequence(), 10, ids[10], 0, 3, 0});
  for (int p = 0; p < 10; ++p) plan.rows.push_back({&moved.sequence(), p, 0, 3, 6, -1});
  plan.rows.push_back({&moved.sequence(), 10, ids[10], 0, 6, 1});
  plan.outputs.push_back({3, nullptr, 0, false});
  plan.outputs.push_back({6, nullptr, 0, true});
  const auto results = must(model::run_step(*l.transformer, plan));
  CHECK(results[0].token == neighbour_expected.token);
  CHECK(std::equal(expected_logits.begin(), expected_logits.end(), results[1].logits.begin()));
}

TEST_CASE("Catch-up: without stored rows it is refused as unsupported", "[model]") {
  const TempFile path(".gguf");
  write_tiny_model(path.path());
  Loaded l = Loaded::make(path.path(), 6, {.keep_rows = false, .max_rows = 16, .max_outputs = 1});
  model::Sequential sequence(*l.transformer, 3);
  must(sequence.feed(some_ids(5, 1)));
  const auto moved = sequence.catch_up(6);
  REQUIRE_FALSE(moved.has_value());
  CHECK(moved.error().code == Errc::unsupported);
}

}  // namespace helios::test
