#pragma once
// The texts inside frames: what follows `END tag`, TOK's extra fields, and the JSON of INFO and STATS.

#include <string>
#include <string_view>

#include "actors/messages.hpp"
#include "protocol/generate_options.hpp"

namespace helios::protocol {

struct SessionOptions;

/// "length prompt=31 completion=16 depth=30.0 exits=30:16 ttft_ms=41 tok_s=198".
std::string end_text(const actors::Finish& finish);

/// " ids=5,7 depths=30,30 logprobs=-0.1,-2 top=5:-0.1/9:-2.5,…"; empty when nothing was asked for.
std::string token_extra(const actors::TextChunk& chunk, const TokenFields& fields);

/// An error's text; a BUSY one starts with retry_ms=N.
std::string error_text(const Error& error);

/// One line of JSON.
std::string info_json(const SessionOptions& options, bool authenticated);
std::string stats_json(const actors::Stats& stats);

}  // namespace helios::protocol
