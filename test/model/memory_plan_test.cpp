#include "model/memory_plan.hpp"

#include "test/model/model_fixture.hpp"

namespace helios::test {

TEST_CASE("MemoryPlan: what it says is what the device then holds", "[model]") {
  const TempFile path(".gguf");
  write_tiny_model(path.path(), {.type = gpu::DataType::q4_1, .head_type = gpu::DataType::q8_0});
  const model::TransformerOptions options{.max_rows = 32, .max_outputs = 4};
  Loaded l = Loaded::make(path.path(), 4, options);
  const auto plan = model::MemoryPlan::make(*l.device, *l.file, options);
  gpu::DeviceBudget& budget = l.device->budget();
  CHECK(plan.weight_bytes(4) == budget.used(gpu::Use::weights));
  CHECK(plan.workspace_bytes == budget.used(gpu::Use::workspace));
  CHECK(plan.kv_bytes_per_token_layer == 2U * 2 * 16 * 2);  // K and V, 2 kv heads of 16, F16
  CHECK(plan.row_bytes_per_token == 64U * 2);
  CHECK(plan.token_bytes(4) == 4 * plan.kv_bytes_per_token_layer + 128);
  CHECK(plan.token_bytes(6) == 6 * plan.kv_bytes_per_token_layer);
  CHECK(plan.sequence_bytes(33, 4) == l.transformer->kv_cache()->sequence_bytes(33, 4));

  const std::size_t just = plan.needed_bytes(100, 4);
  CHECK(plan.max_sequences(just, 100, 4) == 1);
  CHECK(plan.max_sequences(just - 1, 100, 4) == 0);
  CHECK(plan.max_depth(just, 100) == 4);
  CHECK(plan.max_tokens(plan.weight_bytes(6), 6) == 0);
  CHECK(plan.explain(just, 4).find("leaves room for") != std::string::npos);
  const std::size_t least = plan.needed_bytes(plan.block_tokens, 4);  // one block of KV
  CHECK(plan.explain(least, 6).find("exit layer 4 would fit") != std::string::npos);
  CHECK(plan.explain(1000, 6).find("no depth fits") != std::string::npos);
}

}  // namespace helios::test
