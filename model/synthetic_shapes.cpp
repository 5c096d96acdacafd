#include "model/synthetic_shapes.hpp"

#include <fmt/format.h>

namespace helios::model {

namespace {

struct Shape {
  std::string_view name, architecture;
  int layers;
  std::int64_t hidden, feed_forward;
  int heads, kv_heads, head_dim;
  std::int64_t vocab;
  int context;
  float rope_base;
  bool tied;
  double llama3_factor = 0.0;  // 0: plain RoPE
};

constexpr Shape kShapes[] = {
    {"opt-125m", "opt", 12, 768, 3072, 12, 12, 64, 50272, 2048, 0.0F, true},
    {"opt-1.3b", "opt", 24, 2048, 8192, 32, 32, 64, 50272, 2048, 0.0F, true},
    {"opt-2.7b", "opt", 32, 2560, 10240, 32, 32, 80, 50272, 2048, 0.0F, true},
    {"opt-6.7b", "opt", 32, 4096, 16384, 32, 32, 128, 50272, 2048, 0.0F, true},
    {"opt-13b", "opt", 40, 5120, 20480, 40, 40, 128, 50272, 2048, 0.0F, true},
    {"llama2-7b", "llama", 32, 4096, 11008, 32, 32, 128, 32000, 4096, 1e4F, false},
    {"llama2-13b", "llama", 40, 5120, 13824, 40, 40, 128, 32000, 4096, 1e4F, false},
    {"llama3-8b", "llama", 32, 4096, 14336, 32, 8, 128, 128256, 8192, 5e5F, false},
    {"llama3.2-1b", "llama", 16, 2048, 8192, 32, 8, 64, 128256, 131072, 5e5F, true, 32.0},
    {"qwen2.5-0.5b", "qwen2", 24, 896, 4864, 14, 2, 64, 151936, 32768, 1e6F, true},
    {"qwen2.5-1.5b", "qwen2", 28, 1536, 8960, 12, 2, 128, 151936, 32768, 1e6F, true},
};

}  // namespace

Result<ModelConfig> synthetic_shape(std::string_view name) {
  for (const Shape& shape : kShapes) {
    if (shape.name != name) continue;
    const Architecture& architecture = *find_architecture(shape.architecture);
    ModelConfig c;
    c.architecture = architecture.name;
    c.name = fmt::format("{} (synthetic)", shape.name);
    c.parts = architecture.parts;
    c.layers = shape.layers;
    c.hidden = shape.hidden;
    c.feed_forward = shape.feed_forward;
    c.heads = shape.heads;
    c.kv_heads = shape.kv_heads;
    c.head_dim = shape.head_dim;
    c.vocab = shape.vocab;
    c.context = shape.context;
    c.norm_epsilon = shape.architecture == "qwen2" ? 1e-6F : 1e-5F;
    c.tied_head = shape.tied;
    if (c.parts.rope != RopeKind::none) {
      c.rope_dims = shape.head_dim;
      c.rope_base = shape.rope_base;
    }
    if (shape.llama3_factor > 0.0) {
      c.rope_factors = llama3_factors({.factor = shape.llama3_factor}, c.rope_dims, c.rope_base);
    }
    return c;
  }
  return fail(Errc::bad_request,
              fmt::format("shape '{}' is not known: {} are", name.substr(0, 80), synthetic_shape_names()));
}

std::string synthetic_shape_names() {
  std::string names;
  for (const Shape& shape : kShapes) names += fmt::format("{}{}", names.empty() ? "" : ", ", shape.name);
  return names;
}

}  // namespace helios::model
