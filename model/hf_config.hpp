#pragma once
// config.json of a Hugging Face folder. Keys: docs/ARCHITECTURES.md.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/architecture.hpp"
#include "model/config.hpp"
#include "model/json_object.hpp"
#include "runtime/result.hpp"

namespace helios::model {

struct HfConfig {
  ModelConfig model;  // checked; its name is empty unless the file has one
  std::optional<std::int32_t> bos;
  std::vector<std::int32_t> eos;
};

/// Errors: unsupported (an architecture, activation, RoPE scaling, attention window or variant that we do not
/// run: by name), bad_file (a key is missing, of another kind or out of range).
Result<HfConfig> read_hf_config(const JsonObject& json);

/// Token ids of a key that is a number, a list or absent. Errors: bad_file.
Result<std::vector<std::int32_t>> token_ids(const JsonObject& json, std::string_view key);

}  // namespace helios::model
