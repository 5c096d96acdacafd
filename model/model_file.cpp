#include "model/model_file.hpp"

#include <fmt/format.h>

namespace helios::model {

namespace {

LayerTensors find_layer(const GgufFile& file, int layer) {  // ModelConfig has checked that all are there
  auto find = [&](const char* name) { return file.find(fmt::format("blk.{}.{}.weight", layer, name)); };
  return {find("attn_norm"), find("attn_q"),   find("attn_k"), find("attn_v"),  find("attn_output"),
          find("ffn_norm"),  find("ffn_gate"), find("ffn_up"), find("ffn_down")};
}

}  // namespace

Result<std::shared_ptr<const ModelFile>> ModelFile::open(const std::string& path,
                                                         const std::string& exits_path) {
  std::shared_ptr<ModelFile> file(new ModelFile());
  Result<std::shared_ptr<const GgufFile>> gguf = GgufFile::open(path);
  if (!gguf) return gguf.error();
  file->gguf_ = std::move(*gguf);
  Result<ModelConfig> config = ModelConfig::from_gguf(*file->gguf_);
  if (!config) return config.error();
  file->config_ = std::move(*config);
  Result<std::shared_ptr<const Tokenizer>> tokenizer = Tokenizer::from_gguf(*file->gguf_);
  if (!tokenizer) return tokenizer.error();
  file->tokenizer_ = std::move(*tokenizer);
  if (file->tokenizer_->vocab_size() != file->config_.vocab) {
    return fail(Errc::bad_file, fmt::format("{}: the tokenizer has {} tokens, token_embd.weight has {} rows",
                                            path, file->tokenizer_->vocab_size(), file->config_.vocab));
  }
  Result<std::shared_ptr<gpu::FileReader>> reader = gpu::FileReader::open(path);
  if (!reader) return reader.error();
  file->reader_ = std::move(*reader);
  for (int layer = 0; layer < file->config_.layers; ++layer) {
    file->layers_.push_back(find_layer(*file->gguf_, layer));
  }
  if (file->gguf_->has("tokenizer.chat_template")) {
    const Result<std::string> source = file->gguf_->str("tokenizer.chat_template");
    if (!source) return source.error();
    Result<ChatTemplate> parsed = ChatTemplate::parse(*source);
    if (parsed) {
      file->chat_template_ = std::move(*parsed);
    } else {
      file->chat_template_error_ = parsed.error().message;
    }
  }
  if (!exits_path.empty()) {
    Result<std::shared_ptr<const ExitsFile>> exits =
        ExitsFile::open(exits_path, *file->gguf_, file->config_, file->tokenizer_->vocab_hash());
    if (!exits) return exits.error();
    file->exits_ = std::move(*exits);
  }
  return std::shared_ptr<const ModelFile>(std::move(file));
}

std::vector<int> ModelFile::exit_layers() const {
  std::vector<int> layers;
  if (exits_) {
    for (const ExitHead& head : exits_->heads()) layers.push_back(head.layer);
  }
  return layers;
}

std::optional<float> ModelFile::threshold(int layer) const {
  const ExitHead* head = exits_ ? exits_->find(layer) : nullptr;
  return head != nullptr ? head->threshold : std::nullopt;
}

std::size_t ModelFile::layer_bytes(int index) const {
  const LayerTensors& t = layer(index);
  std::size_t bytes = 0;
  for (const GgufTensor* tensor :
       {t.attention_norm, t.q, t.k, t.v, t.o, t.feed_forward_norm, t.gate, t.up, t.down}) {
    bytes += tensor->bytes;
  }
  return bytes;
}

std::size_t ModelFile::global_bytes() const {
  std::size_t bytes = 0;
  for (const char* name : {"token_embd.weight", "output_norm.weight", "output.weight"}) {
    if (const GgufTensor* tensor = gguf_->find(name)) bytes += tensor->bytes;
  }
  return bytes;
}

}  // namespace helios::model
