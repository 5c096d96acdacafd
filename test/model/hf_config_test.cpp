#include "model/hf_config.hpp"

#include <catch2/catch_test_macros.hpp>

#include "model/shard_index.hpp"

namespace helios::test {

namespace {

using model::JsonObject;

const std::string kLlama =
    R"("architectures":["LlamaForCausalLM"],"num_hidden_layers":2,"hidden_size":64,"num_attention_heads":4,
       "vocab_size":100,"max_position_embeddings":128,"intermediate_size":96,"rms_norm_eps":1e-5)";
const std::string kOpt =
    R"("architectures":["OPTForCausalLM"],"num_hidden_layers":2,"hidden_size":64,"num_attention_heads":4,
       "vocab_size":100,"max_position_embeddings":128,"ffn_dim":96)";

Result<model::HfConfig> read(const std::string& fields) {
  const Result<JsonObject> json = JsonObject::parse("{" + fields + "}", "config.json");
  if (!json) return json.error();
  return model::read_hf_config(*json);
}

void refused(const std::string& fields, Errc code, const std::string& named) {
  INFO(fields);
  const auto config = read(fields);
  REQUIRE_FALSE(config.has_value());
  INFO(config.error().message);
  CHECK(config.error().code == code);
  CHECK(config.error().message.find(named) != std::string::npos);
  CHECK(config.error().message.starts_with("config.json"));
}

}  // namespace

TEST_CASE("HfConfig: what a Llama's keys mean", "[model]") {
  const auto plain = read(kLlama).value().model;
  CHECK(plain.kv_heads == 4);
  CHECK(plain.head_dim == 16);
  CHECK(plain.rope_base == 10000.0F);
  CHECK(plain.rope_factors.empty());
  CHECK_FALSE(plain.tied_head);
  CHECK(plain.parts.rope == model::RopeKind::halves);
  CHECK_FALSE(plain.parts.qkv_bias);
  CHECK_FALSE(read(kLlama + "}").has_value());
}

TEST_CASE("HfConfig: optional keys, old and new spellings of RoPE", "[model]") {
  const auto config =
      read(kLlama + R"(,"num_key_value_heads":2,"head_dim":32,"rope_theta":5e5,"attention_bias":true,
    "mlp_bias":true,"tie_word_embeddings":true,"bos_token_id":1,"eos_token_id":[2,3],
    "rope_scaling":{"rope_type":"llama3","factor":8,"low_freq_factor":1,"high_freq_factor":4,
                    "original_max_position_embeddings":64})")
          .value();
  CHECK(config.model.kv_heads == 2);
  CHECK(config.model.q_width() == 128);
  CHECK(config.model.rope_base == 5e5F);
  CHECK(config.model.rope_factors.size() == 16);
  CHECK(config.model.rope_factors.back() == 8.0F);
  CHECK(config.model.parts.o_bias);
  CHECK(config.model.parts.mlp_bias);
  CHECK(config.model.tied_head);
  CHECK(config.bos == 1);
  CHECK(config.eos == std::vector<std::int32_t>{2, 3});
  CHECK(read(kLlama + R"(,"rope_scaling":{"type":"linear","factor":4})").value().model.rope_scale == 0.25F);
  const auto newer = read(kLlama + R"(,"rope_parameters":{"rope_type":"default","rope_theta":7.0})").value();
  CHECK(newer.model.rope_base == 7.0F);
}

TEST_CASE("HfConfig: OPT", "[model]") {
  const auto config = read(kOpt).value().model;
  CHECK(config.tied_head);
  CHECK(config.parts.learned_positions);
  CHECK(config.parts.mlp_bias);
  CHECK_FALSE(read(kOpt + R"(,"enable_bias":false)").value().model.parts.qkv_bias);
  refused(kOpt + R"(,"do_layer_norm_before":false)", Errc::unsupported, "opt-350m");
  refused(kOpt + R"(,"word_embed_proj_dim":32)", Errc::unsupported, "word_embed_proj_dim 32");
  refused(kOpt + R"(,"activation_function":"gelu")", Errc::unsupported, "gelu");
  refused(kOpt + R"(,"_remove_final_layer_norm":true)", Errc::unsupported, "_remove_final_layer_norm");
}

TEST_CASE("HfConfig: what cannot run is refused by name", "[model]") {
  refused(R"("architectures":["MambaForCausalLM"])", Errc::unsupported, "MambaForCausalLM");
  refused(R"("num_hidden_layers":2)", Errc::bad_file, "architectures");
  refused(R"("architectures":["LlamaForCausalLM"])", Errc::bad_file, "num_hidden_layers");
  refused(kLlama + R"(,"hidden_act":"gelu")", Errc::unsupported, "gelu");
  refused(kLlama + R"(,"rope_scaling":{"rope_type":"yarn","factor":4})", Errc::unsupported, "yarn");
  refused(kLlama + R"(,"rope_scaling":{"rope_type":"llama3","factor":4})", Errc::bad_file, "low_freq_factor");
  refused(kLlama + R"(,"rope_scaling":{"rope_type":"linear","factor":0})", Errc::bad_file, "scale");
  refused(kLlama + R"(,"rope_scaling":[])", Errc::bad_file, "rope_scaling");
  refused(kLlama + R"(,"quantization_config":{"bits":4})", Errc::unsupported, "quantization_config");
  refused(kLlama + R"(,"num_key_value_heads":3)", Errc::bad_file, "kv heads");
  refused(kLlama + R"(,"head_dim":1e9)", Errc::bad_file, "head width");
  refused(kLlama + R"(,"head_dim":2.5)", Errc::bad_file, "head_dim");
  refused(kLlama + R"(,"partial_rotary_factor":0.5)", Errc::unsupported, "partial_rotary_factor");
  refused(kLlama + R"(,"eos_token_id":"x")", Errc::bad_file, "eos_token_id");
  refused(kLlama + R"(,"layer_types":["sliding_attention"])", Errc::unsupported, "sliding_attention");
  refused(kLlama + R"(,"use_sliding_window":true,"sliding_window":8)", Errc::unsupported, "sliding");
  CHECK(read(kLlama + R"(,"use_sliding_window":false,"sliding_window":8)").has_value());
}

TEST_CASE("ShardIndex: names stay in the folder", "[model]") {
  const auto parse = [](const std::string& text) {
    return model::read_shard_index(JsonObject::parse(text, "index").value());
  };
  const auto good =
      parse(R"({"weight_map":{"a":"x-1.safetensors","b":"x-2.safetensors","c":"x-1.safetensors"}})");
  REQUIRE(good.has_value());
  CHECK(good->files.size() == 2);
  CHECK(good->file_of.at("c") == "x-1.safetensors");
  for (const char* name :
       {"../x.safetensors", "/x.safetensors", "x.bin", "a/b.safetensors", ".safetensors"}) {
    CHECK_FALSE(parse(std::string(R"({"weight_map":{"a":")") + name + "\"}}").has_value());
  }
  CHECK_FALSE(parse(R"({"weight_map":{"a":1}})").has_value());
  CHECK_FALSE(parse(R"({"weight_map":{}})").has_value());
  CHECK_FALSE(parse(R"({})").has_value());
}

}  // namespace helios::test
