#pragma once
// GEN's options, checked at the edge.

#include <string>

#include "actors/request.hpp"
#include "protocol/line_parser.hpp"
#include "runtime/result.hpp"

namespace helios::protocol {

/// What TOK lines of one request carry beside the text.
struct TokenFields {
  bool ids = false;       // ids= and depths=
  bool logprobs = false;  // logprobs=
  int top = 0;            // top= with this many candidates
};

struct GenerateCommand {
  actors::GenerateRequest request;
  TokenFields fields;
};

/// A GEN line (its text included) as a request. Nothing is guessed, clipped or ignored.
/// Errors: bad_request, which names the option and what it accepts.
Result<GenerateCommand> parse_generate(const Line& line);

/// Strict numbers: the whole text, no sign on unsigned ones, no NaN or infinity. Errors: bad_request naming
/// `key`.
Result<std::int64_t> parse_integer(std::string_view key, std::string_view text, std::int64_t min,
                                   std::int64_t max);
Result<float> parse_float(std::string_view key, std::string_view text, float min, float max);

}  // namespace helios::protocol
