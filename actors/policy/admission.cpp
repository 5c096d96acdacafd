#include "actors/policy/admission.hpp"

#include <fmt/format.h>

#include <cmath>

namespace helios::actors::policy {

namespace {

Result<std::size_t> prompt_bytes(const GenerateRequest& request) {
  if (const auto* text = std::get_if<PromptText>(&request.prompt)) {
    if (text->empty()) return fail(Errc::bad_request, "the prompt is empty");
    return text->size();
  }
  if (const auto* turns = std::get_if<ChatTurns>(&request.prompt)) {
    if (turns->empty()) return fail(Errc::bad_request, "the chat has no turns");
    std::size_t bytes = 0;
    for (const ChatTurn& turn : *turns) bytes += turn.role.size() + turn.content.size();
    return bytes;
  }
  const auto& ids = std::get<PromptIds>(request.prompt);
  if (ids.empty()) return fail(Errc::bad_request, "the prompt has no token ids");
  return ids.size() * sizeof(std::int32_t);
}

}  // namespace

Result<void> check_request(const AdmissionBounds& bounds, const Load& load, const GenerateRequest& request) {
  if (load.live_requests >= bounds.live_requests_max) {
    return fail(Errc::busy, fmt::format("{} requests are live and the bound is {}; retry later",
                                        load.live_requests, bounds.live_requests_max));
  }
  const Result<std::size_t> bytes = prompt_bytes(request);
  if (!bytes) return bytes.error();
  if (*bytes > bounds.prompt_bytes_max) {
    return fail(Errc::too_long,
                fmt::format("the prompt has {} bytes and the bound is {}", *bytes, bounds.prompt_bytes_max));
  }
  if (request.min_confidence && !(std::isfinite(*request.min_confidence) && *request.min_confidence >= 0 &&
                                  *request.min_confidence <= 1)) {
    return fail(Errc::bad_request, fmt::format("min_confidence {} is outside 0..1", *request.min_confidence));
  }
  if (std::cmp_greater(request.sampling.stop.size(), bounds.stop_strings_max)) {
    return fail(Errc::bad_request, fmt::format("{} stop strings and the bound is {}",
                                               request.sampling.stop.size(), bounds.stop_strings_max));
  }
  for (const std::string& stop : request.sampling.stop) {
    if (stop.empty()) return fail(Errc::bad_request, "a stop string is empty");
    if (stop.size() > bounds.stop_string_bytes_max) {
      return fail(Errc::bad_request, fmt::format("a stop string has {} bytes and the bound is {}",
                                                 stop.size(), bounds.stop_string_bytes_max));
    }
  }
  return request.sampling.validate();
}

Result<void> check_tokens(const AdmissionBounds& bounds, const Load& load, std::int64_t prompt_tokens,
                          int max_tokens, std::int64_t context_tokens, bool memory_fits) {
  if (prompt_tokens < 1) return fail(Errc::bad_request, "the prompt has no tokens");
  const std::int64_t total = prompt_tokens + max_tokens;
  if (total > context_tokens) {
    return fail(Errc::too_long,
                fmt::format("{} prompt tokens and {} to generate make {}; the model's context is {} tokens",
                            prompt_tokens, max_tokens, total, context_tokens));
  }
  if (!memory_fits) {
    return fail(Errc::too_long,
                fmt::format("{} prompt tokens and {} to generate make {}: more than the memory holds at "
                            "this depth even when empty; give more memory or ask for less",
                            prompt_tokens, max_tokens, total));
  }
  if (load.live_prompt_tokens + prompt_tokens > bounds.live_prompt_tokens_max) {
    return fail(Errc::busy,
                fmt::format("{} prompt tokens are live, {} more pass the bound of {}; retry later",
                            load.live_prompt_tokens, prompt_tokens, bounds.live_prompt_tokens_max));
  }
  return {};
}

}  // namespace helios::actors::policy
