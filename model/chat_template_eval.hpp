#pragma once
// Runs a parsed template within its budgets.

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "model/chat_template_parser.hpp"
#include "model/chat_template_value.hpp"

namespace helios::model::jinja {

struct Budget {
  std::size_t steps = 0;
  std::size_t output_bytes = 0;
  std::size_t work_bytes = 0;
};

/// The output of `nodes` with `globals` in scope. Throws Failure: bad_request, too_long, unsupported.
std::string evaluate(const std::vector<Node>& nodes, std::map<std::string, Value, std::less<>> globals,
                     const Budget& budget);

}  // namespace helios::model::jinja
