#pragma once
// Tensor names of Hugging Face folders and GGUF's for the same tensors.

#include <optional>
#include <string>
#include <string_view>

#include "model/architecture.hpp"

namespace helios::model {

/// "model.layers.3.self_attn.q_proj.weight" -> "blk.3.attn_q.weight". Nothing: no tensor of this kind of
/// model. OPT's names may lack the leading "model.".
std::optional<std::string> gguf_name(const Architecture& architecture, std::string_view hf_name);

/// The way back; a name that has none is given as it is.
std::string hf_name(const Architecture& architecture, std::string_view gguf_name);

/// Left over by old versions, recomputed by all: "….rotary_emb.inv_freq".
bool is_ignored_tensor(std::string_view hf_name);

}  // namespace helios::model
