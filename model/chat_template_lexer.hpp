#pragma once
// Template source to tokens: text, tags, and what is inside the tags. Used by the chat template's parser
// alone.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/result.hpp"

namespace helios::model::jinja {

/// Leaves the parser or the evaluator; ChatTemplate turns it into a Result, so it never crosses an API.
struct Failure {
  Error error;
};
[[noreturn]] void raise(Errc code, int line, std::string message);

struct Token {
  enum class Kind : std::uint8_t {
    text,         // outside of tags
    print_begin,  // {{
    print_end,    // }}
    block_begin,  // {%
    block_end,    // %}
    name,
    string,
    integer,
    op,  // operators and brackets, in `text`
    end,
  };
  Kind kind = Kind::end;
  std::string text;
  std::int64_t integer = 0;
  int line = 1;
};

/// The whole source, comments dropped and whitespace control done, ending with Kind::end.
/// Throws Failure: bad_file (an unclosed tag or string, a stray character), unsupported (a number with a
/// point).
std::vector<Token> tokenize(std::string_view source);

}  // namespace helios::model::jinja
