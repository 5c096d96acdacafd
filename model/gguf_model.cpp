#include "model/gguf_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>

namespace helios::model {

namespace {

/// "…-00002-of-00005.gguf": part 2 of 5.
struct PartName {
  std::string stem;
  unsigned number = 0, count = 0;
};

std::optional<PartName> part_name(const std::string& path) {
  constexpr std::string_view kEnd = "-00000-of-00000.gguf";
  if (path.size() <= kEnd.size() || !path.ends_with(".gguf")) return std::nullopt;
  const std::string_view end = std::string_view(path).substr(path.size() - kEnd.size());
  const auto digits = [](std::string_view text) -> std::optional<unsigned> {
    unsigned value = 0;
    const auto [at, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || at != text.data() + text.size()) return std::nullopt;
    return value;
  };
  const auto number = digits(end.substr(1, 5)), count = digits(end.substr(10, 5));
  if (end[0] != '-' || end.substr(6, 4) != "-of-" || !number || !count) return std::nullopt;
  if (*number < 1 || *number > *count) return std::nullopt;
  return PartName{path.substr(0, path.size() - kEnd.size()), *number, *count};
}

/// Reads `{architecture}.{key}`.
class Keys {
 public:
  Keys(const GgufFile& file, std::string_view architecture) : file_(file), prefix_(architecture) {
    prefix_ += '.';
  }
  Result<void> count(const char* key, int& to) const { return into(file_.u32(prefix_ + key), to); }
  Result<void> count(const char* key, std::int64_t& to) const { return into(file_.u32(prefix_ + key), to); }
  Result<void> count_or(const char* key, std::int64_t fallback, int& to) const {
    if (file_.has(prefix_ + key)) return count(key, to);
    to = static_cast<int>(fallback);
    return {};
  }
  Result<void> number_or(const char* key, float fallback, float& to) const {
    const Result<float> value = file_.f32_or(prefix_ + key, fallback);
    if (!value) return value.error();
    to = *value;
    return {};
  }
  Result<std::string> text_or(const char* key, const char* fallback) const {
    return file_.str_or(prefix_ + key, fallback);
  }

 private:
  template <class Number>
  Result<void> into(const Result<std::uint32_t>& value, Number& to) const {
    if (!value) return fail(value.error().code, file_.path() + ": " + value.error().message);
    to = static_cast<Number>(std::min(*value, std::uint32_t{1} << 30U));  // what is larger is refused later
    return {};
  }
  const GgufFile& file_;
  std::string prefix_;
};

/// The first error of a row of reads.
template <class... Results>
Result<void> all(Results... results) {
  Result<void> first;
  ((first && !results ? void(first = results) : void()), ...);
  return first;
}

Result<void> read_rope(const GgufFile& file, const Checkpoint& checkpoint, const Keys& keys, ModelConfig& c) {
  float factor = 1.0F;
  if (Result<void> ok = all(keys.count_or("rope.dimension_count", c.head_dim, c.rope_dims),
                            keys.number_or("rope.freq_base", 10000.0F, c.rope_base),
                            keys.number_or("rope.scaling.factor", 1.0F, factor));
      !ok)
    return ok;
  const Result<std::string> scaling = keys.text_or("rope.scaling.type", "none");
  if (!scaling) return scaling.error();
  if (*scaling != "none" && *scaling != "linear") {
    return fail(Errc::unsupported,
                fmt::format("{}: RoPE scaling '{}' is not supported (linear and rope_freqs.weight are)",
                            file.path(), *scaling));
  }
  if (*scaling == "linear") c.rope_scale = 1.0F / factor;
  if (const StoredTensor* factors = checkpoint.find("rope_freqs.weight")) {
    Result<std::vector<float>> values = checkpoint.read_floats(*factors);
    if (!values) return values.error();
    c.rope_factors = std::move(*values);
  }
  return {};
}

Result<ModelConfig> read_config(const GgufFile& file, const Checkpoint& checkpoint) {
  ModelConfig c;
  const Result<std::string> name = file.str("general.architecture");
  if (!name) return name.error();
  const Architecture* architecture = find_architecture(*name);
  if (architecture == nullptr) {
    return fail(Errc::unsupported, fmt::format("{}: architecture '{}' is not supported ({} are)", file.path(),
                                               name->substr(0, 80), architecture_names()));
  }
  c.architecture = *name;
  c.parts = architecture->parts;
  const Result<std::string> title = file.str_or("general.name", "");
  if (!title) return title.error();
  c.name = *title;
  const Keys keys(file, *name);
  int key_length = 0, value_length = 0, experts = 0;
  if (Result<void> ok =
          all(keys.count("block_count", c.layers), keys.count("embedding_length", c.hidden),
              keys.count("feed_forward_length", c.feed_forward), keys.count("attention.head_count", c.heads),
              keys.count("context_length", c.context), keys.count_or("expert_count", 0, experts));
      !ok)
    return ok.error();
  if (experts != 0)
    return fail(Errc::unsupported, fmt::format("{}: mixtures of experts are not supported", file.path()));
  if (c.heads < 1) return fail(Errc::bad_file, fmt::format("{}: a model without heads", file.path()));
  if (Result<void> ok = all(keys.count_or("attention.head_count_kv", c.heads, c.kv_heads),
                            keys.count_or("attention.key_length", c.hidden / c.heads, key_length));
      !ok)
    return ok.error();
  if (Result<void> ok = keys.count_or("attention.value_length", key_length, value_length); !ok)
    return ok.error();
  if (value_length != key_length) {
    return fail(Errc::unsupported, fmt::format("{}: heads of {} and {} (key, value) are not supported: they "
                                               "must be equal",
                                               file.path(), key_length, value_length));
  }
  c.head_dim = key_length;
  const bool rms = c.parts.norm == gpu::NormPack::Kind::rms;
  const char* epsilon = rms ? "attention.layer_norm_rms_epsilon" : "attention.layer_norm_epsilon";
  if (Result<void> ok = keys.number_or(epsilon, 1e-5F, c.norm_epsilon); !ok) return ok.error();
  if (c.parts.learned_positions) {
    if (Result<void> ok = keys.count_or("position_offset", c.parts.position_offset, c.parts.position_offset);
        !ok)
      return ok.error();
  }
  if (c.parts.rope != RopeKind::none) {
    if (Result<void> ok = read_rope(file, checkpoint, keys, c); !ok) return ok.error();
  }
  if (architecture->may_have_biases) {
    c.parts.qkv_bias = checkpoint.find("blk.0.attn_q.bias") != nullptr;
    c.parts.o_bias = checkpoint.find("blk.0.attn_output.bias") != nullptr;
    c.parts.mlp_bias = checkpoint.find("blk.0.ffn_down.bias") != nullptr;
  }
  const Result<const StoredTensor*> embedding = checkpoint.require("token_embd.weight");
  if (!embedding) return embedding.error();
  c.vocab = (*embedding)->rows();
  c.tied_head = checkpoint.find("output.weight") == nullptr;
  if (Result<void> ok = c.check(file.path()); !ok) return ok.error();
  return c;
}

Result<void> add_tensors(const GgufFile& file, Checkpoint& checkpoint) {
  const Result<std::uint32_t> index = checkpoint.add_file(file.path());
  if (!index) return index.error();
  for (const GgufTensor& t : file.tensors()) {
    StoredTensor stored{.name = t.name,
                        .type = t.type,
                        .held = t.type,
                        .row_count = t.rows(),
                        .col_count = t.cols(),
                        .file = *index,
                        .file_offset = t.file_offset,
                        .bytes = t.bytes};
    if (Result<void> ok = checkpoint.add(std::move(stored)); !ok) return ok;
  }
  return {};
}

/// A part must say that it is the one its name says: files of two sets are easily mixed.
Result<void> check_part(const GgufFile& part, std::size_t number, std::size_t count) {
  const Result<std::uint32_t> no = part.u32("split.no");
  const Result<std::uint32_t> of = part.u32("split.count");
  if (!no || !of) {
    return fail(Errc::bad_file, fmt::format("{}: named as part {} of {}, but it has no split.no and "
                                            "split.count: rename it, or fetch the set again",
                                            part.path(), number + 1, count));
  }
  if (*no != number || *of != count) {
    return fail(Errc::bad_file,
                fmt::format("{}: is part {} of {}, its name says {} of {}: fetch the set again", part.path(),
                            *no + 1, *of, number + 1, count));
  }
  return {};
}

}  // namespace

std::vector<std::string> gguf_parts(const std::string& path) {
  const auto part = part_name(path);
  if (!part) return {path};
  std::vector<std::string> paths;
  for (unsigned i = 1; i <= part->count; ++i)
    paths.push_back(fmt::format("{}-{:05}-of-{:05}.gguf", part->stem, i, part->count));
  return paths;
}

Result<OpenedModel> open_gguf_model(const std::string& path) {
  OpenedModel model;
  model.checkpoint = std::make_shared<Checkpoint>(path);
  const std::vector<std::string> paths = gguf_parts(path);
  std::shared_ptr<const GgufFile> first;
  for (std::size_t i = 0; i < paths.size(); ++i) {
    std::error_code ignored;
    if (paths.size() > 1 && !std::filesystem::exists(paths[i], ignored)) {
      return fail(Errc::io_error,
                  fmt::format("{}: part {} of {} is not here: a split model needs all its files "
                              "in one folder",
                              paths[i], i + 1, paths.size()));
    }
    Result<std::shared_ptr<const GgufFile>> file = GgufFile::open(paths[i]);
    if (!file) return file.error();
    if (paths.size() > 1) {
      if (Result<void> ok = check_part(**file, i, paths.size()); !ok) return ok.error();
    }
    if (Result<void> ok = add_tensors(**file, *model.checkpoint); !ok) return ok.error();
    if (i == 0) first = std::move(*file);
  }
  if (paths.size() > 1 && first->has("split.tensors.count")) {
    const Result<std::uint32_t> tensors = first->u32("split.tensors.count");
    if (!tensors) return tensors.error();
    if (*tensors != model.checkpoint->tensors().size()) {
      return fail(Errc::bad_file, fmt::format("{}: the set has {} tensors, its first part says {}", path,
                                              model.checkpoint->tensors().size(), *tensors));
    }
  }
  Result<ModelConfig> config = read_config(*first, *model.checkpoint);
  if (!config) return config.error();
  model.config = std::move(*config);
  Result<std::shared_ptr<const Tokenizer>> tokenizer = Tokenizer::from_gguf(*first);
  if (!tokenizer) return tokenizer.error();
  model.tokenizer = std::move(*tokenizer);
  if (first->has(kSyntheticSeedKey)) {
    const Result<std::uint32_t> seed = first->u32(kSyntheticSeedKey);
    if (!seed) return seed.error();
    model.synthetic = *seed;
  }
  if (first->has("tokenizer.chat_template")) {
    Result<std::string> source = first->str("tokenizer.chat_template");
    if (!source) return source.error();
    model.chat_template = std::move(*source);
  }
  return model;
}

}  // namespace helios::model
