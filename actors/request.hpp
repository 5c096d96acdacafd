#pragma once
// What a client asks for, as plain values: no socket, no file format.

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "model/sampling.hpp"

namespace helios::actors {

/// One turn of a chat. role: "system", "user" or "assistant" (the model's template decides which it accepts).
struct ChatTurn {
  std::string role;
  std::string content;
};

using ChatTurns = std::vector<ChatTurn>;
using PromptText = std::string;
using PromptIds = std::vector<std::int32_t>;

/// One generation. A plain text prompt is one user turn of the model's chat template unless `raw`; token ids
/// are taken as they are. A request that names a model, an exit layer or a policy is pinned: it never moves
/// in mid-answer and its tokens never count as breaches.
struct GenerateRequest {
  std::string model;  // "" = the server's first model
  std::variant<PromptText, ChatTurns, PromptIds> prompt;
  bool raw = false;  // text only: no chat template; special tokens in the text are not parsed
  bool return_prompt_ids = false;  // in Accepted
  model::Sampling sampling;
  std::optional<int> exit_layer;        // layers to run, 1..L; must be resident
  std::string policy;                   // "" = the server's; "full" or "greedy"
  std::optional<float> min_confidence;  // [0, 1]; the request's own breach threshold
  std::string label;                    // for logs only; need not be unique
};

}  // namespace helios::actors
