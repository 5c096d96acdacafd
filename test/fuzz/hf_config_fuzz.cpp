// Any bytes as config.json: refused in one sentence, or a shape that every later step can rely on. The
// planted fault: a reader that forgets to bound what it takes.

#include <cmath>
#include <string_view>

#include "model/hf_config.hpp"
#include "model/hf_tensor_names.hpp"
#include "test/fuzz/fuzz_support.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace helios;
  using fuzz::require;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto json = model::JsonObject::parse(text, "input");
  if (!json) {
    require(json.error().message.starts_with("input"));
    return 0;
  }
  auto config = model::read_hf_config(*json);
  if (!config) {
    require(config.error().message.starts_with("input"));
    require(config.error().message.find('\n') == std::string::npos);
    return 0;
  }
  model::ModelConfig& c = config->model;
  if (fuzz::kPlantedFault) c.layers += 1 << 20;
  require(c.check("input").has_value());
  require(c.layers >= 1 && c.layers <= 1024 && c.heads % c.kv_heads == 0 && c.head_dim >= 1);
  require(c.vocab >= 1 && c.vocab <= (std::int64_t{1} << 30));
  require(c.rope_factors.empty() || c.rope_factors.size() == static_cast<std::size_t>(c.rope_dims / 2));
  for (const float factor : c.rope_factors) require(std::isfinite(factor) && factor >= 1.0F);
  for (const std::int32_t id : config->eos) require(id >= 0);
  const model::Architecture* architecture = model::find_architecture(c.architecture);
  require(architecture != nullptr);
  require(c.parts.rope != model::RopeKind::neighbours);
  return 0;
}
