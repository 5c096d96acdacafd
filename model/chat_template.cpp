#include "model/chat_template.hpp"

#include <utility>

#include "model/chat_template_eval.hpp"
#include "model/chat_template_lexer.hpp"
#include "model/chat_template_parser.hpp"

namespace helios::model {

struct ChatTemplate::Program {
  std::vector<jinja::Node> nodes;
};

Result<ChatTemplate> ChatTemplate::parse(std::string_view source, const ChatTemplateLimits& limits) {
  if (source.size() > limits.template_bytes) {
    return fail(Errc::too_long, "chat template: " + std::to_string(source.size()) + " bytes (at most " +
                                    std::to_string(limits.template_bytes) + " are allowed)");
  }
  try {
    ChatTemplate made;
    made.limits_ = limits;
    made.program_ = std::make_shared<const Program>(Program{jinja::parse(source, limits.nesting)});
    return made;
  } catch (jinja::Failure& failure) {
    return std::move(failure.error);
  }
}

Result<std::string> ChatTemplate::render(std::span<const ChatMessage> messages, bool add_generation_prompt,
                                         std::string_view bos_token, std::string_view eos_token) const {
  using jinja::Value;
  std::size_t bytes = 0;
  for (const ChatMessage& message : messages) bytes += message.role.size() + message.content.size();
  if (bytes > limits_.output_bytes) {
    return fail(Errc::too_long, "the conversation is " + std::to_string(bytes) + " bytes (at most " +
                                    std::to_string(limits_.output_bytes) + " are allowed)");
  }
  auto list = std::make_shared<jinja::List>();
  list->depth = 2;
  for (const ChatMessage& message : messages) {
    auto entry = std::make_shared<jinja::Mapping>();
    entry->items.emplace_back("role", Value::of(message.role));
    entry->items.emplace_back("content", Value::of(message.content));
    list->items.emplace_back(std::shared_ptr<const jinja::Mapping>(std::move(entry)));
  }
  std::map<std::string, Value, std::less<>> globals;
  globals.emplace("messages", Value(std::shared_ptr<const jinja::List>(std::move(list))));
  globals.emplace("add_generation_prompt", Value(add_generation_prompt));
  globals.emplace("bos_token", Value::of(std::string(bos_token)));
  globals.emplace("eos_token", Value::of(std::string(eos_token)));
  try {
    return jinja::evaluate(program_->nodes, std::move(globals),
                           {limits_.steps, limits_.output_bytes, limits_.work_bytes});
  } catch (jinja::Failure& failure) {
    return std::move(failure.error);
  }
}

}  // namespace helios::model
