#pragma once
// A model on disk: its shape, tokenizer, template, exits, and where each layer's bytes lie.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gpu/file_reader.hpp"
#include "model/chat_template.hpp"
#include "model/config.hpp"
#include "model/exits.hpp"
#include "model/gguf.hpp"
#include "model/tokenizer.hpp"
#include "runtime/result.hpp"

namespace helios::model {

/// The nine tensors of a layer, in the order that they are used.
struct LayerTensors {
  const GgufTensor *attention_norm, *q, *k, *v, *o, *feed_forward_norm, *gate, *up, *down;
};

/// Immutable after open; any thread may use it. Weights are not read here.
class ModelFile {
 public:
  /// `exits_path` "" = none. Errors: those of GgufFile, ModelConfig, Tokenizer and ExitsFile. A chat template
  /// that cannot be parsed is no error: chat_template() is null and chat_template_error() says why.
  static Result<std::shared_ptr<const ModelFile>> open(const std::string& path,
                                                       const std::string& exits_path = "");

  const std::string& path() const noexcept { return gguf_->path(); }
  const ModelConfig& config() const noexcept { return config_; }
  const GgufFile& gguf() const noexcept { return *gguf_; }
  const Tokenizer& tokenizer() const noexcept { return *tokenizer_; }
  std::shared_ptr<const Tokenizer> tokenizer_ptr() const noexcept { return tokenizer_; }
  /// Null when the file has none, or one we cannot render.
  const ChatTemplate* chat_template() const noexcept { return chat_template_ ? &*chat_template_ : nullptr; }
  const std::string& chat_template_error() const noexcept { return chat_template_error_; }
  /// Null without an exits file.
  const ExitsFile* exits() const noexcept { return exits_.get(); }
  /// Layers of the exits file's heads, rising; empty without one.
  std::vector<int> exit_layers() const;
  /// Calibrated confidence threshold of the exit at `layer`.
  std::optional<float> threshold(int layer) const;

  const LayerTensors& layer(int layer) const { return layers_[static_cast<std::size_t>(layer)]; }
  /// Bytes of a layer in the file.
  std::size_t layer_bytes(int layer) const;
  /// Bytes of embedding, norms and head in the file; exits are apart.
  std::size_t global_bytes() const;
  /// All reads of weights go through it, and it counts them.
  const std::shared_ptr<gpu::FileReader>& reader() const noexcept { return reader_; }

 private:
  ModelFile() = default;
  std::shared_ptr<const GgufFile> gguf_;
  std::shared_ptr<gpu::FileReader> reader_;
  ModelConfig config_;
  std::shared_ptr<const Tokenizer> tokenizer_;
  std::optional<ChatTemplate> chat_template_;
  std::string chat_template_error_;
  std::shared_ptr<const ExitsFile> exits_;
  std::vector<LayerTensors> layers_;
};

}  // namespace helios::model
