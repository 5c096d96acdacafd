#pragma once
#include <string>
#include <vector>

#include "runtime/result.hpp"

namespace helios::apps {

struct Prompt {
  std::string id, text;
  bool raw = false;  // a text to go on from; else one user turn of the chat template
};

/// Lines of {"prompt": "...", "id": "...", "raw": false}; id is the line number when absent, raw is `raw`.
/// Errors: io_error, bad_request (which line and why).
Result<std::vector<Prompt>> read_prompts(const std::string& path, bool raw);

}  // namespace helios::apps
