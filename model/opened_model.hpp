#pragma once
// What a format's loader hands to ModelFile.

#include <memory>
#include <optional>
#include <string>

#include "model/checkpoint.hpp"
#include "model/config.hpp"
#include "model/sampling.hpp"
#include "model/tokenizer.hpp"

namespace helios::model {

struct OpenedModel {
  ModelConfig config;  // its name: as the file calls itself
  std::shared_ptr<Checkpoint> checkpoint;
  std::shared_ptr<const Tokenizer> tokenizer;
  std::optional<std::string> chat_template;  // its source
  std::optional<Sampling> suggested;         // generation_config.json's; never applied unasked
  std::optional<std::uint64_t> synthetic;    // made by `helios synth` with this seed: random weights
};

}  // namespace helios::model
