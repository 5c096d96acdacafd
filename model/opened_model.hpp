#pragma once
// What a format's loader hands to ModelFile.

#include <memory>
#include <optional>
#include <string>

#include "model/checkpoint.hpp"
#include "model/config.hpp"
#include "model/tokenizer.hpp"

namespace helios::model {

struct OpenedModel {
  ModelConfig config;
  std::shared_ptr<Checkpoint> checkpoint;
  std::shared_ptr<const Tokenizer> tokenizer;
  std::optional<std::string> chat_template;  // its source
};

}  // namespace helios::model
