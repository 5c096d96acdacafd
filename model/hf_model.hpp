#pragma once
// A Hugging Face folder as a model: config.json, *.safetensors, tokenizer.json and what stands beside them.
// Which files and keys: docs/ARCHITECTURES.md.

#include <string>

#include "model/opened_model.hpp"

namespace helios::model {

/// Whether `path` is a folder: a model of this format, if it is one at all.
bool is_hf_folder(const std::string& path);

/// The name a folder is called by, without what is above it: a link keeps its own.
std::string folder_name(const std::string& folder);

/// Reads the configuration, the tokenizer and the headers of the weights; q and k stay in the folder's row
/// order. Errors: those of read_hf_config and of the tokenizer; io_error (a file is not there: says which and
/// what to do), unsupported (an element type, a tensor no part uses: by name), bad_file.
Result<OpenedModel> open_hf_model(const std::string& folder);

}  // namespace helios::model
