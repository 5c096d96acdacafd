#pragma once
// What the files beside tokenizer.json say about a tokenizer.

#include <optional>
#include <string>

#include "model/hf_config.hpp"
#include "model/tokenizer.hpp"
#include "runtime/result.hpp"

namespace helios::model {

/// From config.json, and tokenizer_config.json and generation_config.json of `folder` where they are. The end
/// tokens of all of them end an answer, config.json's first. Errors: bad_file, io_error.
Result<HuggingFaceIds> read_hf_ids(const std::string& folder, const HfConfig& config);

/// The default chat template's source: chat_template.jinja, or tokenizer_config.json's string or list.
/// Errors: bad_file, io_error.
Result<std::optional<std::string>> read_chat_template(const std::string& folder);

}  // namespace helios::model
