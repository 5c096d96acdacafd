#include "model/transformer.hpp"

#include <map>

#include "test/model/model_fixture.hpp"

namespace helios::test {

using gpu::DataType;
using model::StepPlan;

TEST_CASE("Transformer: prefill in chunks equals prefill at once and one by one, bit for bit", "[model]") {
  const TempFile path(".gguf");
  for (const DataType type : {DataType::f32, DataType::q4_1}) {
    write_tiny_model(path.path(), {.type = type});
    Loaded l = Loaded::make(path.path(), 6, {.kv_type = DataType::f32, .max_rows = 64, .max_outputs = 4});
    const auto ids = some_ids(40, 1);
    std::vector<std::vector<float>> logits;
    for (const int chunk : {0, 7, 1}) {
      model::Sequential sequence(*l.transformer, 6);
      const auto result = must(sequence.feed(ids, {}, true, chunk));
      logits.emplace_back(result.logits.begin(), result.logits.end());
    }
    CHECK(logits[0] == logits[1]);
    CHECK(logits[0] == logits[2]);
  }
}

TEST_CASE("Transformer: 32 staggered sequences of many depths give the ids that each gives alone",
          "[model]") {
  const TempFile path(".gguf");
  write_tiny_model(path.path(), {.type = DataType::q4_1, .head_type = DataType::q8_0});
  Loaded l = Loaded::make(path.path(), 6, {.max_rows = 128, .max_outputs = 32});
  constexpr int kCount = 32;
  struct One {
    std::vector<std::int32_t> prompt, alone, together;
    model::KvCache::Sequence sequence;
    model::Sampling sampling;
    int depth = 0, start = 0, position = 0, length = 0;
  };
  std::vector<One> all(kCount);
  for (int i = 0; i < kCount; ++i) {
    One& one = all[static_cast<std::size_t>(i)];
    one.prompt = some_ids(3 + i * 5 % 23, i);
    one.depth = 2 + i % 5;
    one.start = i * 7 % 19;
    one.length = 6 + i % 9;
    one.sampling = greedy(one.length);
    if (i % 3 == 1) one.sampling.temperature = 0.9F, one.sampling.seed = static_cast<std::uint64_t>(i);
    if (i % 3 == 2) one.sampling.repetition_penalty = 1.3F;
    model::Sequential alone(*l.transformer, one.depth);
    one.alone = must(alone.generate(one.prompt, one.sampling));
  }
  for (int step = 0; step < 200; ++step) {
    StepPlan plan;
    std::vector<One*> owners;
    int left = 0;
    for (One& one : all) {
      if (std::cmp_equal(one.together.size(), one.length)) continue;
      ++left;
      if (step < one.start) continue;
      std::vector<std::int32_t> ids = one.prompt;
      ids.insert(ids.end(), one.together.begin(), one.together.end());
      const int take = std::min(4, static_cast<int>(ids.size()) - one.position);  // chunks of 4 in prefill
      must(l.transformer->kv_cache()->reserve(one.sequence, static_cast<int>(ids.size()), {0, one.depth}));
      for (int k = 0; k < take; ++k) {
        plan.rows.push_back({&one.sequence, one.position, ids[static_cast<std::size_t>(one.position)], 0,
                             static_cast<std::int16_t>(one.depth), -1});
        ++one.position;
      }
      if (std::cmp_equal(one.position, ids.size())) {
        plan.rows.back().output = static_cast<std::int16_t>(plan.outputs.size());
        plan.outputs.push_back({one.depth, &one.sampling, one.together.size(), false});
        owners.push_back(&one);
      }
    }
    if (left == 0) break;
    if (plan.rows.empty()) continue;
    const auto results = must(model::run_step(*l.transformer, plan));
    REQUIRE(results.size() == owners.size());
    for (std::size_t i = 0; i < owners.size(); ++i) owners[i]->together.push_back(results[i].token);
  }
  for (const One& one : all) CHECK(one.together == one.alone);
}

TEST_CASE("Transformer: loading holds and reads only the layers asked for", "[model]") {
  const TempFile path(".gguf");
  write_tiny_model(path.path(), {.layers = 10, .type = DataType::q4_1});
  Loaded l = Loaded::make(path.path(), 4, {.max_rows = 8, .max_outputs = 1});
  std::size_t device_bytes = model::global_device_bytes(*l.device, *l.file);
  std::size_t file_bytes = l.file->global_bytes();
  for (int layer = 0; layer < 4; ++layer) {
    device_bytes += model::layer_device_bytes(*l.device, *l.file, layer);
    file_bytes += l.file->layer_bytes(layer);
  }
  CHECK(l.transformer->weight_bytes() == device_bytes);
  CHECK(l.device->budget().used(gpu::Use::weights) == device_bytes);
  CHECK(l.file->checkpoint().bytes_read() == file_bytes);
  must(model::load_layers(*l.device, l.file, *l.transformer, 6));
  CHECK(l.file->checkpoint().bytes_read() == file_bytes + l.file->layer_bytes(4) + l.file->layer_bytes(5));
  l.transformer->drop_layers(4);
  CHECK(l.device->budget().used(gpu::Use::weights) == device_bytes);
}

TEST_CASE("Transformer: a plan that cannot be is refused and changes nothing", "[model]") {
  const TempFile path(".gguf");
  write_tiny_model(path.path());
  Loaded l = Loaded::make(path.path(), 4, {.max_rows = 4, .max_outputs = 2});
  model::KvCache::Sequence sequence;
  const auto refused = [&](StepPlan plan) {
    const auto event = l.transformer->start(plan);
    REQUIRE_FALSE(event.has_value());
    CHECK(event.error().code == Errc::bad_request);
    return event.error().message;
  };
  CHECK(refused({}).find("0 rows") != std::string::npos);
  CHECK(refused({{{&sequence, 0, 1, 0, 4, -1}}, {}}).find("reserve") != std::string::npos);
  must(l.transformer->kv_cache()->reserve(sequence, 8, {0, 4}));
  CHECK(refused({{{&sequence, 0, 1, 0, 5, -1}}, {}}).find("resident") != std::string::npos);
  CHECK(refused({{{&sequence, 1, 1, 0, 4, -1}}, {}}).find("has 0 positions") != std::string::npos);
  CHECK(refused({{{&sequence, 0, 320, 0, 4, -1}}, {}}).find("token 320") != std::string::npos);
  CHECK(refused({{{&sequence, 0, 1, 2, 4, -1}}, {}}).find("stored row") != std::string::npos);
  CHECK(refused({{{&sequence, 0, 1, 0, 4, 0}}, {}}).find("output 0 of 0") != std::string::npos);
  CHECK(refused({{{&sequence, 0, 1, 0, 4, 0}}, {{3, nullptr, 0, false}}}).find("depth 3") !=
        std::string::npos);
  CHECK(sequence.tokens().empty());
  CHECK(sequence.filled(0) == 0);
}

}  // namespace helios::test
