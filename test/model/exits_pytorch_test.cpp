// Files that tools/tune_exits.py wrote give the logits in the engine that they give in PyTorch.

#include <algorithm>
#include <cmath>

#include "test/model/exits_reference.hpp"
#include "test/model/model_fixture.hpp"

namespace helios::test {

TEST_CASE("Exits: norm, affine, block and lora from the training tool equal PyTorch to 1e-3", "[model]") {
  for (const std::string name : {"llama", "qwen2"}) {
    const std::string path = HELIOS_TEST_DATA "/exits/" + name;
    Loaded l =
        Loaded::make(path + ".gguf", 6, {.kv_type = gpu::DataType::f32, .max_rows = 32, .max_outputs = 1},
                     gpu::Kernels::fast, std::size_t{64} << 20, path + ".exits.safetensors");
    CHECK(l.file->exit_layers() == std::vector<int>{1, 2, 3, 4});
    const auto sequences = read_exits_reference(path + ".json");
    REQUIRE(sequences.size() == 2);
    for (const ReferenceSequence& expected : sequences) {
      REQUIRE(expected.exits.size() == 4);
      for (const auto& [layer, exit] : expected.exits) {
        INFO(name << ", exit " << layer);
        model::Sequential sequence(*l.transformer, layer);
        const auto result = must(sequence.feed(expected.ids, {}, true));
        REQUIRE(exit.ids.back().size() == result.logits.size());
        const float size =
            std::max(std::abs(exit.logits.back().front()), std::abs(exit.logits.back().back()));
        CHECK(size > 1.0F);
        float largest = 0.0F;
        for (std::size_t i = 0; i < result.logits.size(); ++i) {
          const auto id = static_cast<std::size_t>(exit.ids.back()[i]);
          largest = std::max(largest, std::abs(result.logits[id] - exit.logits.back()[i]));
        }
        CHECK(largest < 1e-3F * size);
      }
    }
  }
}

}  // namespace helios::test
