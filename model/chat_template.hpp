#pragma once
// The chat template of a model file: a restricted Jinja. Templates come with model files, so they are input
// that we do not trust: no attribute of the host is reachable, and steps, output, memory and nesting are
// bounded.

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "runtime/result.hpp"

namespace helios::model {

struct ChatMessage {
  std::string role;
  std::string content;
};

struct ChatTemplateLimits {
  std::size_t template_bytes = 256 << 10;
  int nesting = 64;               // of blocks and of expressions
  std::size_t steps = 2'000'000;  // nodes evaluated in one rendering
  std::size_t output_bytes = 8 << 20;
  std::size_t work_bytes = 64 << 20;  // of all strings and lists made on the way
};

/// Supported: text, {{ }}, {% if/elif/else %}, {% for x in xs if c %} with else, loop.*, break, continue, {%
/// set %} and namespace(), comments, whitespace control; == != < <= > >= in, not in, and, or, not, + - * // %
/// ~, a if c else b, indexing, slicing, attributes, lists and mappings; `is` defined, none, string, mapping,
/// …; filters trim, length, upper, lower, tojson, default, first, last, join, …; a few string methods;
/// raise_exception(). As transformers runs templates: trim_blocks and lstrip_blocks are on, one trailing
/// newline of the template is cut. Immutable; any thread may render.
class ChatTemplate {
 public:
  /// Errors: unsupported (a construct, filter, test or function we do not have: names it and its line),
  /// bad_file (a syntax error, with its line), too_long.
  static Result<ChatTemplate> parse(std::string_view source, const ChatTemplateLimits& limits = {});

  /// The prompt's text. Errors: bad_request (the template raised an exception: its message, e.g. about roles;
  /// or it uses a value in a way it cannot be), too_long (a limit is reached).
  Result<std::string> render(std::span<const ChatMessage> messages, bool add_generation_prompt,
                             std::string_view bos_token = {}, std::string_view eos_token = {}) const;

 private:
  struct Program;  // the tree
  ChatTemplate() = default;
  std::shared_ptr<const Program> program_;
  ChatTemplateLimits limits_;
};

}  // namespace helios::model
