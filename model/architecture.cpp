#include "model/architecture.hpp"

#include <algorithm>
#include <array>

namespace helios::model {

namespace {

constexpr std::array kArchitectures{
    Architecture{.name = "llama",
                 .hugging_face_name = "LlamaForCausalLM",
                 .parts = {},
                 .may_have_biases = true},
    Architecture{.name = "qwen2",
                 .hugging_face_name = "Qwen2ForCausalLM",
                 .parts = {.qkv_bias = true, .rope = RopeKind::halves}},
    Architecture{.name = "opt",
                 .hugging_face_name = "OPTForCausalLM",
                 .parts = {.norm = gpu::NormPack::Kind::layer,
                           .norm_bias = true,
                           .qkv_bias = true,
                           .o_bias = true,
                           .mlp = MlpKind::relu,
                           .mlp_bias = true,
                           .rope = RopeKind::none,
                           .learned_positions = true,
                           .position_offset = 2}},
};

}  // namespace

const Architecture* find_architecture(std::string_view name) noexcept {
  const auto* it = std::find_if(kArchitectures.begin(), kArchitectures.end(),
                                [name](const Architecture& a) { return a.name == name; });
  return it == kArchitectures.end() ? nullptr : it;
}

const Architecture* find_hugging_face_architecture(std::string_view name) noexcept {
  const auto* it = std::find_if(kArchitectures.begin(), kArchitectures.end(),
                                [name](const Architecture& a) { return a.hugging_face_name == name; });
  return it == kArchitectures.end() ? nullptr : it;
}

std::string_view architecture_names() noexcept {
  return "llama, qwen2 and opt";
}
std::string_view hugging_face_names() noexcept {
  return "LlamaForCausalLM, Qwen2ForCausalLM and OPTForCausalLM";
}

}  // namespace helios::model
