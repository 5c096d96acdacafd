#pragma once
// A GGUF file, or a set of them, as a model. Keys and tensors by architecture: docs/ARCHITECTURES.md.

#include "model/gguf.hpp"
#include "model/opened_model.hpp"

namespace helios::model {

/// Marks a file whose weights are random (`helios synth`): the seed, u32.
inline constexpr const char* kSyntheticSeedKey = "helios.synthetic.seed";

/// Reads headers only. A name ending in -00001-of-0000N.gguf opens its whole set, whichever part is named.
/// Errors: those of GgufFile and Tokenizer; unsupported (an architecture, experts, a RoPE scaling we do not
/// have: by name), bad_file (a key is missing or out of range, a part of a set is missing or of another set).
Result<OpenedModel> open_gguf_model(const std::string& path);

/// The paths of the set that `path` is a part of, in order; `path` alone when its name is not a part's.
std::vector<std::string> gguf_parts(const std::string& path);

}  // namespace helios::model
