#include "model/hf_tensor_names.hpp"

#include <algorithm>
#include <span>

namespace helios::model {

namespace {

struct Pair {
  std::string_view hf, gguf;  // without ".weight" and ".bias"
};

constexpr Pair kLlamaLayer[] = {
    {"input_layernorm", "attn_norm"},    {"self_attn.q_proj", "attn_q"},
    {"self_attn.k_proj", "attn_k"},      {"self_attn.v_proj", "attn_v"},
    {"self_attn.o_proj", "attn_output"}, {"post_attention_layernorm", "ffn_norm"},
    {"mlp.gate_proj", "ffn_gate"},       {"mlp.up_proj", "ffn_up"},
    {"mlp.down_proj", "ffn_down"},
};
constexpr Pair kLlamaGlobal[] = {
    {"model.embed_tokens", "token_embd"}, {"model.norm", "output_norm"}, {"lm_head", "output"}};

constexpr Pair kOptLayer[] = {
    {"self_attn_layer_norm", "attn_norm"},
    {"self_attn.q_proj", "attn_q"},
    {"self_attn.k_proj", "attn_k"},
    {"self_attn.v_proj", "attn_v"},
    {"self_attn.out_proj", "attn_output"},
    {"final_layer_norm", "ffn_norm"},
    {"fc1", "ffn_up"},
    {"fc2", "ffn_down"},
};
constexpr Pair kOptGlobal[] = {{"model.decoder.embed_tokens", "token_embd"},
                               {"model.decoder.embed_positions", "position_embd"},
                               {"model.decoder.final_layer_norm", "output_norm"},
                               {"lm_head", "output"}};

struct Names {
  std::string_view layers;  // before the number of a layer
  std::span<const Pair> layer, global;
};

/// By what the architectures differ in: learned positions are OPT's.
Names names_of(const Architecture& architecture) {
  if (architecture.parts.learned_positions) return {"model.decoder.layers.", kOptLayer, kOptGlobal};
  return {"model.layers.", kLlamaLayer, kLlamaGlobal};
}

constexpr std::string_view kGgufLayers = "blk.";

/// Splits "….weight" or "….bias" at its last point.
struct Split {
  std::string_view stem, kind;  // kind: ".weight", ".bias", or empty
};
Split split_kind(std::string_view name) {
  for (const std::string_view kind : {".weight", ".bias"}) {
    if (name.ends_with(kind)) return {name.substr(0, name.size() - kind.size()), kind};
  }
  return {name, {}};
}

/// Splits "12.rest"; an empty number when it does not begin with one.
struct Numbered {
  std::string_view number, rest;
};
Numbered split_number(std::string_view text) {
  const std::size_t digits = text.find_first_not_of("0123456789");
  if (digits == 0 || digits == std::string_view::npos || text[digits] != '.') return {};
  return {text.substr(0, digits), text.substr(digits + 1)};
}

std::string_view find(std::span<const Pair> pairs, std::string_view Pair::* from, std::string_view Pair::* to,
                      std::string_view name) {
  const auto it = std::find_if(pairs.begin(), pairs.end(), [&](const Pair& p) { return p.*from == name; });
  return it == pairs.end() ? std::string_view() : (*it).*to;
}

std::string translate(std::string_view name, std::string_view Pair::* from, std::string_view Pair::* to,
                      const Names& names, std::string_view from_layers, std::string_view to_layers) {
  const auto [stem, kind] = split_kind(name);
  if (kind.empty()) return {};
  std::string out;
  if (stem.starts_with(from_layers)) {
    const auto [number, rest] = split_number(stem.substr(from_layers.size()));
    const std::string_view found = find(names.layer, from, to, rest);
    if (number.empty() || found.empty()) return {};
    out.append(to_layers).append(number).append(".").append(found);
  } else {
    const std::string_view found = find(names.global, from, to, stem);
    if (found.empty()) return {};
    out = found;
  }
  return out.append(kind);
}

}  // namespace

std::optional<std::string> gguf_name(const Architecture& architecture, std::string_view hf_name) {
  const Names names = names_of(architecture);
  const std::string whole =
      hf_name.starts_with("decoder.") ? "model." + std::string(hf_name) : std::string(hf_name);
  std::string name = translate(whole, &Pair::hf, &Pair::gguf, names, names.layers, kGgufLayers);
  if (name.empty()) return std::nullopt;
  return name;
}

std::string hf_name(const Architecture& architecture, std::string_view gguf_name) {
  const Names names = names_of(architecture);
  std::string name = translate(gguf_name, &Pair::gguf, &Pair::hf, names, kGgufLayers, names.layers);
  return name.empty() ? std::string(gguf_name) : name;
}

bool is_ignored_tensor(std::string_view hf_name) {
  return hf_name.ends_with(".rotary_emb.inv_freq");
}

}  // namespace helios::model
