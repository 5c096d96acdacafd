#pragma once
// Template and tokenizer, on a strand of their own: a long prompt must not hold up Router.

#include "actors/messages.hpp"
#include "model/model_file.hpp"
#include "runtime/actor.hpp"

namespace helios::actors {

class PromptWorker final : public runtime::Actor<PromptWorker, PreparePrompt> {
 public:
  runtime::Task<> on(PreparePrompt msg);
};

/// The ids of a prompt. Text is one user turn of the model's chat template unless `raw`; what a user wrote
/// never becomes a control token in raw text, and BOS is added where the file asks for it. Errors:
/// bad_request, too_long (the template's bounds), unsupported (a chat for a model without template).
Result<std::vector<std::int32_t>> prompt_ids(const model::ModelFile& file,
                                             const std::variant<PromptText, ChatTurns, PromptIds>& prompt,
                                             bool raw);

}  // namespace helios::actors
