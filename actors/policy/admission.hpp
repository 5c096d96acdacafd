#pragma once
// What Router lets in. Every refusal says the figure and the bound.

#include <cstddef>
#include <cstdint>

#include "actors/request.hpp"
#include "runtime/result.hpp"

namespace helios::actors::policy {

struct AdmissionBounds {
  int live_requests_max = 256;
  std::int64_t live_prompt_tokens_max = 1 << 20;
  std::size_t prompt_bytes_max = std::size_t{4} << 20;
  int stop_strings_max = 16;
  std::size_t stop_string_bytes_max = 256;
};

struct Load {
  int live_requests = 0;
  std::int64_t live_prompt_tokens = 0;
};

/// Before any work is done for the request: bytes, counts, ranges. Errors: bad_request, too_long, busy.
Result<void> check_request(const AdmissionBounds& bounds, const Load& load, const GenerateRequest& request);

/// Once the prompt's tokens are counted. context_tokens: the model's limit; memory_fits:
/// whether an empty cache holds them all at the wanted depth. Errors: bad_request (no token), too_long (with
/// both counts), busy.
Result<void> check_tokens(const AdmissionBounds& bounds, const Load& load, std::int64_t prompt_tokens,
                          int max_tokens, std::int64_t context_tokens, bool memory_fits);

}  // namespace helios::actors::policy
