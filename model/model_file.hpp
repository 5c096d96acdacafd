#pragma once
// A model on disk: its shape, tokenizer, template, exits, and where each layer's bytes lie.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "model/chat_template.hpp"
#include "model/checkpoint.hpp"
#include "model/config.hpp"
#include "model/exits.hpp"
#include "model/layer_tensors.hpp"
#include "model/sampling.hpp"
#include "model/tokenizer.hpp"
#include "runtime/result.hpp"

namespace helios::model {

/// Immutable after open; any thread may use it. Weights are not read here.
class ModelFile {
 public:
  /// `path`: a GGUF file (a part of a split one opens its set), or a Hugging Face folder. `exits_path` "" =
  /// none. `quant`: what float matrices are held as; absent: q8_0 of a folder, the file's own types of a GGUF
  /// file. Errors: those of open_gguf_model and open_hf_model,
  /// find_layer and ExitsFile. A chat template that cannot be parsed is no error: chat_template() is null and
  /// chat_template_error() says why.
  static Result<std::shared_ptr<const ModelFile>> open(const std::string& path,
                                                       const std::string& exits_path = "",
                                                       std::optional<Quant> quant = {});

  const std::string& path() const noexcept { return checkpoint_->path(); }
  const ModelConfig& config() const noexcept { return config_; }
  const Checkpoint& checkpoint() const noexcept { return *checkpoint_; }
  const Tokenizer& tokenizer() const noexcept { return *tokenizer_; }
  std::shared_ptr<const Tokenizer> tokenizer_ptr() const noexcept { return tokenizer_; }
  /// Null when the file has none, or one we cannot render.
  const ChatTemplate* chat_template() const noexcept { return chat_template_ ? &*chat_template_ : nullptr; }
  const std::string& chat_template_error() const noexcept { return chat_template_error_; }
  /// What the model's makers sample with (generation_config.json); null when they do not say. Shown, never
  /// applied unasked: defaults here are greedy.
  const Sampling* suggested_sampling() const noexcept { return suggested_ ? &*suggested_ : nullptr; }
  /// The seed of a file that `helios synth` made: its weights are random, so only its size and speed mean
  /// anything.
  std::optional<std::uint64_t> synthetic() const noexcept { return synthetic_; }
  Quant quant() const noexcept { return quant_; }
  /// Null without an exits file.
  const ExitsFile* exits() const noexcept { return exits_.get(); }
  /// Layers of the exits file's heads, rising; empty without one.
  std::vector<int> exit_layers() const;
  /// Calibrated confidence threshold of the exit at `layer`.
  std::optional<float> threshold(int layer) const;

  const LayerTensors& layer(int layer) const { return layers_[static_cast<std::size_t>(layer)]; }
  const GlobalTensors& globals() const noexcept { return globals_; }
  /// Bytes of a layer in the file.
  std::size_t layer_bytes(int layer) const;
  /// Bytes of embedding, positions, norms and head in the file; exits are apart.
  std::size_t global_bytes() const;

 private:
  ModelFile() = default;
  std::shared_ptr<const Checkpoint> checkpoint_;
  ModelConfig config_;
  std::shared_ptr<const Tokenizer> tokenizer_;
  std::optional<ChatTemplate> chat_template_;
  std::string chat_template_error_;
  std::optional<Sampling> suggested_;
  std::optional<std::uint64_t> synthetic_;
  Quant quant_ = Quant::none;
  std::shared_ptr<const ExitsFile> exits_;
  std::vector<LayerTensors> layers_;
  GlobalTensors globals_;
};

}  // namespace helios::model
