#include "model/config.hpp"

#include <fmt/format.h>

#include <array>

namespace helios::model {

namespace {

constexpr std::uint32_t kMaxLayers = 1024;
constexpr std::uint32_t kMaxWidth = 1 << 20;
constexpr std::uint32_t kMaxHeads = 4096;
constexpr std::uint32_t kMaxContext = 1 << 24;

Result<std::uint32_t> bounded(const GgufFile& file, const std::string& key, std::uint32_t limit) {
  Result<std::uint32_t> value = file.u32(key);
  if (!value) return value;
  if (*value == 0 || *value > limit) {
    return fail(Errc::bad_file, fmt::format("{}: {} is {}, outside 1..{}", file.path(), key, *value, limit));
  }
  return value;
}

Result<void> check_shape(const GgufFile& file, const std::string& name, std::int64_t rows,
                         std::int64_t cols) {
  const Result<const GgufTensor*> tensor = file.require(name);
  if (!tensor) return tensor.error();
  if ((*tensor)->rows() != rows || (*tensor)->cols() != cols) {
    return fail(Errc::bad_file, fmt::format("{}: {} is {} x {}, the configuration needs {} x {}", file.path(),
                                            name, (*tensor)->rows(), (*tensor)->cols(), rows, cols));
  }
  return {};
}

Result<void> check_tensors(const GgufFile& file, const ModelConfig& c) {
  struct Shape {
    const char* name;
    std::int64_t rows, cols;
  };
  const std::array<Shape, 9> shapes{{{"attn_norm", 1, c.hidden},
                                     {"attn_q", c.q_width(), c.hidden},
                                     {"attn_k", c.kv_width(), c.hidden},
                                     {"attn_v", c.kv_width(), c.hidden},
                                     {"attn_output", c.hidden, c.q_width()},
                                     {"ffn_norm", 1, c.hidden},
                                     {"ffn_gate", c.feed_forward, c.hidden},
                                     {"ffn_up", c.feed_forward, c.hidden},
                                     {"ffn_down", c.hidden, c.feed_forward}}};
  for (int layer = 0; layer < c.layers; ++layer) {
    for (const Shape& shape : shapes) {
      const std::string name = fmt::format("blk.{}.{}.weight", layer, shape.name);
      if (Result<void> ok = check_shape(file, name, shape.rows, shape.cols); !ok) return ok;
    }
    for (const char* name : {"attn_q.bias", "attn_k.bias", "attn_v.bias", "ffn_gate_exps.weight"}) {
      if (file.find(fmt::format("blk.{}.{}", layer, name)) != nullptr) {
        return fail(Errc::unsupported, fmt::format("{}: blk.{}.{}: this Llama variant is not supported",
                                                   file.path(), layer, name));
      }
    }
  }
  if (file.find("rope_freqs.weight") != nullptr) {
    return fail(
        Errc::unsupported,
        fmt::format("{}: rope_freqs.weight: RoPE with per-frequency factors is not supported", file.path()));
  }
  if (Result<void> ok = check_shape(file, "token_embd.weight", c.vocab, c.hidden); !ok) return ok;
  if (Result<void> ok = check_shape(file, "output_norm.weight", 1, c.hidden); !ok) return ok;
  if (!c.tied_head) return check_shape(file, "output.weight", c.vocab, c.hidden);
  return {};
}

}  // namespace

Result<ModelConfig> ModelConfig::from_gguf(const GgufFile& file) {
  ModelConfig c;
  const Result<std::string> architecture = file.str("general.architecture");
  if (!architecture) return architecture.error();
  if (*architecture != "llama") {
    return fail(Errc::unsupported,
                fmt::format("{}: architecture '{}' is not supported (llama is)", file.path(), *architecture));
  }
  c.architecture = *architecture;
  const Result<std::string> name = file.str_or("general.name", "");
  if (!name) return name.error();
  c.name = *name;

  const auto layers = bounded(file, "llama.block_count", kMaxLayers);
  const auto hidden = bounded(file, "llama.embedding_length", kMaxWidth);
  const auto feed_forward = bounded(file, "llama.feed_forward_length", kMaxWidth);
  const auto heads = bounded(file, "llama.attention.head_count", kMaxHeads);
  const auto context = bounded(file, "llama.context_length", kMaxContext);
  for (const auto* value : {&layers, &hidden, &feed_forward, &heads, &context}) {
    if (!*value) return value->error();
  }
  const auto kv_heads = file.u32_or("llama.attention.head_count_kv", *heads);
  if (!kv_heads) return kv_heads.error();
  const auto key_length = file.u32_or("llama.attention.key_length", *hidden / *heads);
  if (!key_length) return key_length.error();
  const auto value_length = file.u32_or("llama.attention.value_length", *key_length);
  if (!value_length) return value_length.error();
  const auto experts = file.u32_or("llama.expert_count", 0);
  if (!experts) return experts.error();
  if (*experts != 0) {
    return fail(Errc::unsupported, fmt::format("{}: mixtures of experts are not supported", file.path()));
  }
  if (*kv_heads == 0 || *heads % *kv_heads != 0) {
    return fail(Errc::bad_file,
                fmt::format("{}: {} heads cannot share {} kv heads", file.path(), *heads, *kv_heads));
  }
  if (*key_length == 0 || *key_length > kMaxWidth || *key_length % 2 != 0 || *value_length != *key_length) {
    return fail(Errc::unsupported,
                fmt::format("{}: heads of {} and {} (key, value) are not supported: they must be "
                            "equal and even",
                            file.path(), *key_length, *value_length));
  }
  const auto rope_dims = file.u32_or("llama.rope.dimension_count", *key_length);
  const auto rope_base = file.f32_or("llama.rope.freq_base", 10000.0F);
  const auto epsilon = file.f32_or("llama.attention.layer_norm_rms_epsilon", 1e-5F);
  const auto scaling = file.str_or("llama.rope.scaling.type", "none");
  const auto factor = file.f32_or("llama.rope.scaling.factor", 1.0F);
  if (!rope_dims) return rope_dims.error();
  if (!rope_base) return rope_base.error();
  if (!epsilon) return epsilon.error();
  if (!scaling) return scaling.error();
  if (!factor) return factor.error();
  if (*rope_dims > *key_length || *rope_dims % 2 != 0) {
    return fail(Errc::bad_file, fmt::format("{}: llama.rope.dimension_count {} does not fit heads of {}",
                                            file.path(), *rope_dims, *key_length));
  }
  if (*scaling != "none" && *scaling != "linear") {
    return fail(Errc::unsupported,
                fmt::format("{}: RoPE scaling '{}' is not supported", file.path(), *scaling));
  }
  if (!(*rope_base > 0.0F) || !(*epsilon > 0.0F) || !(*factor > 0.0F)) {
    return fail(Errc::bad_file, fmt::format("{}: RoPE base {}, factor {} and norm epsilon {} must be above 0",
                                            file.path(), *rope_base, *factor, *epsilon));
  }
  c.layers = static_cast<int>(*layers);
  c.hidden = *hidden;
  c.feed_forward = *feed_forward;
  c.heads = static_cast<int>(*heads);
  c.kv_heads = static_cast<int>(*kv_heads);
  c.head_dim = static_cast<int>(*key_length);
  c.context = static_cast<int>(*context);
  c.rope_dims = static_cast<int>(*rope_dims);
  c.rope_base = *rope_base;
  c.rope_scale = *scaling == "linear" ? 1.0F / *factor : 1.0F;
  c.norm_epsilon = *epsilon;
  const Result<const GgufTensor*> embedding = file.require("token_embd.weight");
  if (!embedding) return embedding.error();
  c.vocab = (*embedding)->rows();
  c.tied_head = file.find("output.weight") == nullptr;
  if (Result<void> ok = check_tensors(file, c); !ok) return ok.error();
  return c;
}

}  // namespace helios::model
