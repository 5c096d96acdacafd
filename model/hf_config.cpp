#include "model/hf_config.hpp"

#include <fmt/format.h>

#include <cmath>
#include <limits>

namespace helios::model {

namespace {

constexpr std::int64_t kMaxCount = std::int64_t{1} << 30;  // ModelConfig::check has the real bounds

class Reader {
 public:
  explicit Reader(const JsonObject& json) : json_(json) {}

  Result<HfConfig> read() {
    const Result<const Architecture*> architecture = find();
    if (!architecture) return architecture.error();
    ModelConfig& c = config_.model;
    c.architecture = (*architecture)->name;
    c.parts = (*architecture)->parts;
    if (c.parts.rope != RopeKind::none)
      c.parts.rope = RopeKind::halves;  // GGUF's reordering is not done here
    text("_name_or_path", c.name);
    if (json_.has("quantization_config")) {
      return unsupported(
          "the weights are quantised (quantization_config); use the model's F32, F16 or BF16 "
          "folder, or a GGUF file");
    }
    count("num_hidden_layers", c.layers);
    count("hidden_size", c.hidden);
    count("num_attention_heads", c.heads);
    count("vocab_size", c.vocab);
    count("max_position_embeddings", c.context);
    if (error_) return *error_;
    if (c.parts.learned_positions) {
      opt();
    } else {
      llama(**architecture);
    }
    if (error_) return *error_;
    if (Result<void> ok = c.check(json_.label()); !ok) return ok.error();
    if (Result<void> ok = end_tokens(); !ok) return ok.error();
    return std::move(config_);
  }

 private:
  Error unsupported(std::string why) const {
    return fail(Errc::unsupported, fmt::format("{}: {}", json_.label(), why));
  }
  void refuse(std::string why) {
    if (!error_) error_ = unsupported(std::move(why));
  }

  // Each of these keeps the first error.
  template <class T>
  void take(const Result<T>& value, auto& to) {
    if (!value) {
      if (!error_) error_ = value.error();
    } else {
      to = static_cast<std::remove_reference_t<decltype(to)>>(*value);
    }
  }
  void count(std::string_view key, auto& to) { take(json_.whole(key, 1, kMaxCount), to); }
  void count_or(std::string_view key, std::int64_t fallback, auto& to) {
    take(json_.whole_or(key, 1, kMaxCount, fallback), to);
  }
  void text(std::string_view key, std::string& to) { take(json_.text_or(key, ""), to); }
  bool flag(std::string_view key, bool fallback) {
    bool value = fallback;
    take(json_.flag_or(key, fallback), value);
    return value;
  }
  /// Refuses a text that is there and is not `wanted`.
  void only(std::string_view key, std::string_view wanted) {
    std::string value;
    take(json_.text_or(key, wanted), value);
    if (!error_ && value != wanted)
      refuse(fmt::format("\"{}\" is {}, only {} is supported", key, shown(value), wanted));
  }

  Result<const Architecture*> find() const {
    const boost::json::value* list = json_.find("architectures");
    const boost::json::array* names = list != nullptr ? list->if_array() : nullptr;
    if (names == nullptr || names->size() != 1 || !names->front().is_string()) {
      return json_.bad("architectures", fmt::format("a list with one of {}", hugging_face_names()));
    }
    const std::string_view name = names->front().get_string();
    if (const Architecture* found = find_hugging_face_architecture(name)) return found;
    return unsupported(
        fmt::format("architecture {} is not supported ({} are)", shown(name), hugging_face_names()));
  }

  void llama(const Architecture& architecture) {
    ModelConfig& c = config_.model;
    count("intermediate_size", c.feed_forward);
    count_or("num_key_value_heads", c.heads, c.kv_heads);
    count_or("head_dim", std::max<std::int64_t>(c.hidden / c.heads, 1), c.head_dim);
    only("hidden_act", "silu");
    take(json_.number("rms_norm_eps"), c.norm_epsilon);
    if (architecture.may_have_biases) {
      c.parts.qkv_bias = c.parts.o_bias = flag("attention_bias", false);
      c.parts.mlp_bias = flag("mlp_bias", false);
    }
    window();
    c.tied_head = flag("tie_word_embeddings", false);
    c.rope_dims = c.head_dim;
    double rotated = 1.0;
    take(json_.number_or("partial_rotary_factor", 1.0), rotated);
    if (rotated != 1.0) refuse("a partial_rotary_factor other than 1 is not supported");
    rope();
  }

  /// Attention over a sliding window: another forward pass, unless no layer uses it.
  void window() {
    std::int64_t first = config_.model.layers;
    take(json_.whole_or("max_window_layers", 0, kMaxCount, 0), first);
    if (flag("use_sliding_window", false) && first < config_.model.layers && json_.has("sliding_window"))
      refuse("attention over a sliding window (use_sliding_window) is not supported");
    const boost::json::value* kinds = json_.find("layer_types");
    if (kinds == nullptr) return;
    if (!kinds->is_array()) {
      error_ = json_.bad("layer_types", "a list");
      return;
    }
    for (const boost::json::value& kind : kinds->get_array()) {
      if (!kind.is_string() || kind.get_string() != "full_attention")
        refuse(fmt::format("layers of type {} are not supported", shown(boost::json::serialize(kind))));
    }
  }

  /// "rope_theta" and "rope_scaling", or both in "rope_parameters" (transformers 5).
  void rope() {
    ModelConfig& c = config_.model;
    const Result<JsonObject> newer = json_.object_or_empty("rope_parameters");
    const Result<JsonObject> older = json_.object_or_empty("rope_scaling");
    for (const Result<JsonObject>* object : {&newer, &older}) {
      if (!*object && !error_) error_ = object->error();
    }
    if (error_) return;
    double base = 10000.0;
    take(json_.number_or("rope_theta", 10000.0), base);
    take(newer->number_or("rope_theta", base), base);
    c.rope_base = static_cast<float>(base);
    const JsonObject& scaling = newer->data().empty() ? *older : *newer;
    std::string kind;
    take(scaling.text_or("type", "default"), kind);
    take(scaling.text_or("rope_type", kind), kind);
    if (error_ || kind == "default") return;
    if (kind == "linear") {
      double factor = 1.0;
      take(scaling.number("factor"), factor);
      c.rope_scale = static_cast<float>(1.0 / factor);
    } else if (kind == "llama3") {
      llama3(scaling, base);
    } else {
      refuse(fmt::format("RoPE scaling {} is not supported (llama3 and linear are)", shown(kind)));
    }
  }

  void llama3(const JsonObject& scaling, double base) {
    Llama3Scaling s;
    take(scaling.number("factor"), s.factor);
    take(scaling.number("low_freq_factor"), s.low_freq_factor);
    take(scaling.number("high_freq_factor"), s.high_freq_factor);
    take(scaling.number("original_max_position_embeddings"), s.original_context);
    if (error_) return;
    if (!(s.factor >= 1.0) || !(s.low_freq_factor > 0.0) || !(s.high_freq_factor > s.low_freq_factor) ||
        !(s.original_context >= 1.0)) {
      error_ = fail(
          Errc::bad_file,
          fmt::format("{}: factor {}, low_freq_factor {}, high_freq_factor {} and original context {} "
                      "are no llama3 scaling",
                      scaling.label(), s.factor, s.low_freq_factor, s.high_freq_factor, s.original_context));
      return;
    }
    // What check() would refuse anyway, before it is used.
    if (config_.model.rope_dims <= (1 << 20) && base > 0.0)
      config_.model.rope_factors = llama3_factors(s, config_.model.rope_dims, base);
  }

  void opt() {
    ModelConfig& c = config_.model;
    count("ffn_dim", c.feed_forward);
    c.kv_heads = c.heads;
    c.head_dim = static_cast<int>(c.hidden / c.heads);
    only("activation_function", "relu");
    if (!flag("do_layer_norm_before", true)) {
      refuse("do_layer_norm_before is false, as in opt-350m: norms after the blocks are not supported");
    }
    std::int64_t projected = c.hidden;
    count_or("word_embed_proj_dim", c.hidden, projected);
    if (!error_ && projected != c.hidden) {
      refuse(
          fmt::format("word_embed_proj_dim {} is not hidden_size {}, as in opt-350m: projected embeddings "
                      "are not supported",
                      projected, c.hidden));
    }
    if (flag("_remove_final_layer_norm", false)) refuse("_remove_final_layer_norm is not supported");
    if (!flag("layer_norm_elementwise_affine", true)) refuse("norms without weights are not supported");
    if (!flag("enable_bias", true)) c.parts.qkv_bias = c.parts.o_bias = c.parts.mlp_bias = false;
    c.tied_head = flag("tie_word_embeddings", true);
    c.norm_epsilon = 1e-5F;  // OPT's configuration does not say it
  }

  Result<void> end_tokens() {
    Result<std::vector<std::int32_t>> bos = token_ids(json_, "bos_token_id");
    Result<std::vector<std::int32_t>> eos = token_ids(json_, "eos_token_id");
    if (!bos) return bos.error();
    if (!eos) return eos.error();
    if (!bos->empty()) config_.bos = bos->front();
    config_.eos = std::move(*eos);
    return {};
  }

  const JsonObject& json_;
  HfConfig config_;
  std::optional<Error> error_;
};

}  // namespace

Result<std::vector<std::int32_t>> token_ids(const JsonObject& json, std::string_view key) {
  std::vector<std::int32_t> ids;
  const boost::json::value* value = json.find(key);
  if (value == nullptr) return ids;
  const auto add = [&](const boost::json::value& one) {
    boost::system::error_code code;
    const auto id = one.to_number<std::int32_t>(code);
    if (code || id < 0 || ids.size() >= 256) return false;
    ids.push_back(id);
    return true;
  };
  bool good = true;
  if (const boost::json::array* list = value->if_array()) {
    for (const boost::json::value& one : *list) good = good && add(one);
  } else {
    good = add(*value);
  }
  if (!good) return json.bad(key, "a token id or a list of at most 256");
  return ids;
}

Result<HfConfig> read_hf_config(const JsonObject& json) {
  return Reader(json).read();
}

}  // namespace helios::model
