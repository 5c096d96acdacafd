// The trained exits of SmolLM2 against float32 PyTorch (data/exits/README.md).

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "test/model/exits_reference.hpp"
#include "test/model/model_fixture.hpp"

namespace helios::test {

TEST_CASE("SmolLM2: its trained exits agree with PyTorch", "[models]") {
  const std::string path = real_model();
  Loaded l =
      Loaded::make(path, 30, {.max_rows = 256, .max_outputs = 1}, gpu::Kernels::fast, std::size_t{768} << 20,
                   HELIOS_SOURCE_DIR "/models/smollm2-135m-instruct.exits.safetensors");
  struct Sum {
    int positions = 0, equal = 0, far = 0;
    double squares = 0.0, values = 0.0;
  };
  std::map<int, Sum> sums;
  for (const ReferenceSequence& expected : read_exits_reference(HELIOS_TEST_DATA "/exits/smollm2.json")) {
    for (const auto& [layer, exit] : expected.exits) {
      const std::span<const std::int32_t> ids(expected.ids);
      model::Sequential sequence(*l.transformer, layer);
      must(sequence.feed(ids.first(expected.first)));
      Sum& sum = sums[layer];
      for (std::size_t row = 0; row < exit.ids.size(); ++row) {
        const auto result = must(sequence.feed(ids.subspan(expected.first + row, 1), {}, true));
        const auto top = std::max_element(result.logits.begin(), result.logits.end()) - result.logits.begin();
        ++sum.positions;
        if (top == exit.ids[row][0]) {
          ++sum.equal;
        } else if (exit.logits[row][0] - exit.logits[row][1] > 1.0F) {
          ++sum.far;
        }
        for (std::size_t i = 0; i < exit.ids[row].size(); ++i) {
          const double difference =
              double{result.logits[static_cast<std::size_t>(exit.ids[row][i])]} - exit.logits[row][i];
          sum.squares += difference * difference;
          sum.values += 1.0;
        }
      }
    }
  }
  REQUIRE(sums.size() == l.file->exit_layers().size());
  for (const auto& [layer, sum] : sums) {
    const double rms = std::sqrt(sum.squares / sum.values);
    std::printf("exit %d: argmax equal on %d of %d positions, logits of the top 4: rms difference %.4f\n",
                layer, sum.equal, sum.positions, rms);
    CHECK(sum.equal >= sum.positions * 0.97);
    CHECK(sum.far == 0);
    CHECK(rms < 0.2);
  }
}

}  // namespace helios::test
