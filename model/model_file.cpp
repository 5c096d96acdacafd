#include "model/model_file.hpp"

#include <fmt/format.h>

#include "model/gguf_model.hpp"
#include "model/hf_model.hpp"

namespace helios::model {

Result<std::shared_ptr<const ModelFile>> ModelFile::open(const std::string& path,
                                                         const std::string& exits_path,
                                                         std::optional<Quant> quant) {
  std::shared_ptr<ModelFile> file(new ModelFile());
  Result<OpenedModel> opened = is_hf_folder(path) ? open_hf_model(path) : open_gguf_model(path);
  if (!opened) return opened.error();
  file->quant_ = quant.value_or(is_hf_folder(path) ? Quant::q8_0 : Quant::none);
  opened->checkpoint->quantise(file->quant_);
  file->checkpoint_ = std::move(opened->checkpoint);
  file->config_ = std::move(opened->config);
  file->tokenizer_ = std::move(opened->tokenizer);
  file->suggested_ = std::move(opened->suggested);
  file->synthetic_ = opened->synthetic;
  const ModelConfig& config = file->config_;
  const Result<GlobalTensors> globals = find_globals(*file->checkpoint_, config);
  if (!globals) return globals.error();
  file->globals_ = *globals;
  for (int layer = 0; layer < config.layers; ++layer) {
    const Result<LayerTensors> tensors = find_layer(*file->checkpoint_, config, layer);
    if (!tensors) return tensors.error();
    file->layers_.push_back(*tensors);
  }
  if (file->tokenizer_->vocab_size() != config.vocab) {
    return fail(Errc::bad_file, fmt::format("{}: the tokenizer has {} tokens, the embedding has {} rows",
                                            path, file->tokenizer_->vocab_size(), config.vocab));
  }
  if (opened->chat_template) {
    Result<ChatTemplate> parsed = ChatTemplate::parse(*opened->chat_template);
    if (parsed) {
      file->chat_template_ = std::move(*parsed);
    } else {
      file->chat_template_error_ = parsed.error().message;
    }
  }
  if (!exits_path.empty()) {
    Result<std::shared_ptr<const ExitsFile>> exits =
        ExitsFile::open(exits_path, *file->checkpoint_, config, file->tokenizer_->vocab_hash());
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
  return file_bytes(layer(index));
}

std::size_t ModelFile::global_bytes() const {
  return file_bytes(globals_);
}

}  // namespace helios::model
