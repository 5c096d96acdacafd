#include "actors/prompt_worker.hpp"

#include <fmt/format.h>

#include "model/chat_template.hpp"

namespace helios::actors {

Result<std::vector<std::int32_t>> prompt_ids(const model::ModelFile& file,
                                             const std::variant<PromptText, ChatTurns, PromptIds>& prompt,
                                             bool raw) {
  const model::Tokenizer& tokenizer = file.tokenizer();
  if (const auto* ids = std::get_if<PromptIds>(&prompt)) {
    for (const std::int32_t id : *ids) {
      if (id < 0 || id >= tokenizer.vocab_size()) {
        return fail(Errc::bad_request,
                    fmt::format("token id {} is outside 0..{}", id, tokenizer.vocab_size() - 1));
      }
    }
    return *ids;
  }
  const auto* text = std::get_if<PromptText>(&prompt);
  if (text != nullptr && raw) {
    std::vector<std::int32_t> ids = tokenizer.encode(*text, false);
    if (tokenizer.add_bos() && tokenizer.bos_id()) ids.insert(ids.begin(), *tokenizer.bos_id());
    return ids;
  }
  if (file.chat_template() == nullptr) {
    return fail(Errc::unsupported, "this model has no chat template; send the prompt raw");
  }
  std::vector<model::ChatMessage> messages;
  if (text != nullptr) {
    messages.push_back({"user", *text});
  } else {
    for (const ChatTurn& turn : std::get<ChatTurns>(prompt)) messages.push_back({turn.role, turn.content});
  }
  const Result<std::string> rendered =
      file.chat_template()->render(messages, true, tokenizer.bos_text(), tokenizer.eos_text());
  if (!rendered) return rendered.error();
  return tokenizer.encode(*rendered, true);
}

runtime::Task<> PromptWorker::on(PreparePrompt msg) {
  Result<std::vector<std::int32_t>> ids = prompt_ids(*msg.file, msg.prompt, msg.raw);
  if (ids) {
    msg.reply.send(PreparedPrompt{std::move(*ids)});
  } else {
    msg.reply.fail(ids.error());
  }
  co_return;
}

}  // namespace helios::actors
