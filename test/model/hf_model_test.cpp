// A folder that cannot run says why in one sentence, before anything is allocated.

#include "model/hf_model.hpp"

#include <filesystem>
#include <fstream>

#include "model/hf_tensor_names.hpp"
#include "test/model/tiny_checkpoints.hpp"

namespace helios::test {

namespace {

namespace fs = std::filesystem;

/// A copy of a tiny folder, to be spoilt.
class Folder {
 public:
  explicit Folder(const std::string& name) : path_("") {
    fs::copy(tiny(name), path_.path(), fs::copy_options::recursive);
  }
  ~Folder() { fs::remove_all(path_.path()); }
  const std::string& path() const { return path_.path(); }

  std::string read(const std::string& file) const {
    std::ifstream in(path() + "/" + file, std::ios::binary);
    REQUIRE(in.good());
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void write(const std::string& file, const std::string& text) const {
    std::ofstream(path() + "/" + file, std::ios::binary) << text;
  }
  void replace(const std::string& file, const std::string& from, const std::string& to) const {
    std::string text = read(file);
    const std::size_t at = text.find(from);
    REQUIRE(at != std::string::npos);
    write(file, text.replace(at, from.size(), to));
  }
  void remove(const std::string& file) const { REQUIRE(fs::remove(path() + "/" + file)); }

  void refuses(Errc code, const std::string& named) const {
    const auto file = model::ModelFile::open(path());
    REQUIRE_FALSE(file.has_value());
    INFO(file.error().message);
    CHECK(file.error().code == code);
    CHECK(file.error().message.find(named) != std::string::npos);
    CHECK(file.error().message.find('\n') == std::string::npos);
  }

 private:
  TempFile path_;
};

}  // namespace

TEST_CASE("HfModel: a missing file is named", "[model]") {
  for (const auto& [name, file] : {std::pair{"llama", "config.json"},
                                   {"llama", "model.safetensors"},
                                   {"llama", "tokenizer.json"},
                                   {"llama3", "model-00002-of-00003.safetensors"}}) {
    const Folder folder(name);
    folder.remove(file);
    folder.refuses(Errc::io_error, file);
  }
  const Folder pickles("llama");
  fs::rename(pickles.path() + "/model.safetensors", pickles.path() + "/pytorch_model.bin");
  pickles.refuses(Errc::unsupported, "pickles");
  const Folder gguf("llama");
  gguf.remove("config.json");
  gguf.write("x.gguf", "");
  gguf.refuses(Errc::io_error, "name the GGUF file");
}

TEST_CASE(
    "HfModel: a tensor that is missing, foreign, of another shape or type is named as the folder has it",
    "[model]") {
  const std::string weights = "model.safetensors", name = "model.layers.1.mlp.down_proj.weight";
  {
    const Folder folder("llama");
    folder.replace(weights, name, "model.layers.0.mlp.down_xxxx.weight");
    folder.refuses(Errc::unsupported, "down_xxxx");
  }
  {
    const Folder folder("llama");
    folder.replace(weights, name, "model.layers.7.mlp.down_proj.weight");
    folder.refuses(Errc::unsupported, "model.layers.7");
  }
  {
    const Folder folder("llama");  // an old copy that nobody uses
    folder.replace(weights, "model.layers.1.mlp.down_proj.weight", "model.layer.1.rotary_emb.inv_freq  ");
    folder.replace(weights, "inv_freq  \"", "inv_freq\"  ");
    folder.refuses(Errc::bad_file, "'" + name + "' is missing");
  }
  {
    const Folder folder("llama");
    folder.replace(weights, "\"shape\":[36,50]", "\"shape\":[50,36]");
    folder.refuses(Errc::bad_file, "is 50 x 36, the configuration needs 36 x 50");
  }
  {
    const Folder folder("qwen2");
    folder.replace(weights, "\"BF16\"", "\"I16\" ");
    folder.refuses(Errc::unsupported, "type I16");
  }
  {
    const Folder folder("llama");
    folder.replace("config.json", "\"num_hidden_layers\": 2", "\"num_hidden_layers\": 3");
    folder.refuses(Errc::bad_file, "model.layers.2.input_layernorm.weight");
  }
  {
    const Folder folder("llama");
    folder.replace("config.json", "\"tie_word_embeddings\": true", "\"tie_word_embeddings\": false");
    folder.refuses(Errc::bad_file, "lm_head.weight");
  }
  {
    const Folder folder("llama3");
    folder.replace("model.safetensors.index.json", "model.layers.0.mlp.up_proj.weight",
                   "model.layers.0.mlp.up_xxxx.weight");
    folder.refuses(Errc::bad_file, "up_xxxx");
  }
}

TEST_CASE("HfModel: vocabulary and embedding must agree", "[model]") {
  {
    const Folder folder("llama");
    folder.replace("config.json", "\"vocab_size\": 107", "\"vocab_size\": 108");
    folder.refuses(Errc::bad_file, "model.embed_tokens.weight is 107 x 36, the configuration needs 108 x 36");
  }
  {
    const Folder folder("llama");
    folder.write("tokenizer.json", Folder("llama3").read("tokenizer.json"));
    folder.replace("tokenizer.json", "\"<|im_end|>\"", "\"<|im_xxx|>\"");
    CHECK(model::ModelFile::open(folder.path()).has_value());
  }
  {
    const Folder folder("llama");  // a token more than the embedding has rows
    folder.replace("tokenizer.json", "\"added_tokens\": [",
                   R"("added_tokens": [{"id":107,"content":"<more>","single_word":false,"lstrip":false,)"
                   R"("rstrip":false,"normalized":false,"special":true},)");
    folder.refuses(Errc::bad_file, "108");
  }
  {
    const Folder folder("llama");
    folder.replace("generation_config.json", "106", "999");
    folder.refuses(Errc::bad_file, "eos_token_id 999");
  }
}

TEST_CASE("HfModel: chat templates beside and within tokenizer_config.json", "[model]") {
  const Folder folder("llama");
  const auto rendered = [&] {
    const auto file = must(model::ModelFile::open(folder.path()));
    const model::ChatMessage message{"user", "hello"};
    return file->chat_template() == nullptr ? "none"
                                            : must(file->chat_template()->render({&message, 1}, true));
  };
  folder.replace("tokenizer_config.json", "{", R"({"chat_template": "config",)");
  CHECK(rendered().starts_with("<|im_start|>user"));  // the file of its own comes first
  folder.remove("chat_template.jinja");
  CHECK(rendered() == "config");
  folder.replace("tokenizer_config.json", R"("config")",
                 R"([{"name":"tool_use","template":"tools"},{"name":"default","template":"default"}])");
  CHECK(rendered() == "default");
  folder.replace("tokenizer_config.json", R"({"name":"default","template":"default"})", "1");
  folder.refuses(Errc::bad_file, "chat_template");
  folder.remove("tokenizer_config.json");
  CHECK(rendered() == "none");
}

TEST_CASE("HfModel: names of tensors go both ways", "[model]") {
  const model::Architecture& llama = *model::find_architecture("llama");
  const model::Architecture& opt = *model::find_architecture("opt");
  for (const auto& [architecture, hf, gguf] :
       {std::tuple{&llama, "model.layers.12.self_attn.q_proj.bias", "blk.12.attn_q.bias"},
        {&llama, "lm_head.weight", "output.weight"},
        {&llama, "model.layers.0.post_attention_layernorm.weight", "blk.0.ffn_norm.weight"},
        {&opt, "model.decoder.layers.3.final_layer_norm.bias", "blk.3.ffn_norm.bias"},
        {&opt, "model.decoder.final_layer_norm.bias", "output_norm.bias"}}) {
    CHECK(model::gguf_name(*architecture, hf) == gguf);
    CHECK(model::hf_name(*architecture, gguf) == hf);
  }
  CHECK(model::gguf_name(opt, "decoder.layers.3.fc1.weight") == "blk.3.ffn_up.weight");
  for (const char* none :
       {"", "model.layers.weight", "model.layers.x.mlp.up_proj.weight", "model.layers.1.mlp.up_proj.scale",
        "model.layers.1.weight", "blk.0.attn_q.weight"}) {
    CHECK_FALSE(model::gguf_name(llama, none).has_value());
  }
}

}  // namespace helios::test
