#pragma once
// What the files beside tokenizer.json say about a tokenizer.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/result.hpp"

namespace helios::model {

struct HfConfig;

/// Spellings win over ids: tokenizer_config.json has spellings, config.json ids.
struct TokenizerBeside {
  std::optional<std::string> bos_text, eos_text;
  std::optional<std::int32_t> bos_id, eos_id;
  std::vector<std::int32_t> end_ids;  // more tokens that end an answer (generation_config.json)
  std::optional<bool> add_bos;        // over tokenizer.json's post-processor
  std::int64_t vocab_size = 0;        // rows of the embedding: unused tokens "[PAD{id}]" up to it; 0: none
};

/// Reads tokenizer_config.json and generation_config.json of `folder`, where they are. Errors: bad_file.
Result<TokenizerBeside> read_tokenizer_beside(const std::string& folder, const HfConfig& config);

/// The default chat template's source: chat_template.jinja, or tokenizer_config.json's string or list.
/// Errors: bad_file, io_error.
Result<std::optional<std::string>> read_chat_template(const std::string& folder);

}  // namespace helios::model
