// Any text as a chat template: refused, or rendered within its budgets, twice alike, or an error that says
// where.

#include <string_view>

#include "model/chat_template.hpp"
#include "test/fuzz/fuzz_support.hpp"

namespace {

using namespace helios;

constexpr std::size_t kOutputBytes = 4096;
// The planted fault: the output's bound is not the one that was asked for.
constexpr model::ChatTemplateLimits kLimits{
    .template_bytes = 4096,
    .nesting = 16,
    .steps = 20'000,
    .output_bytes = fuzz::kPlantedFault ? 2 * kOutputBytes : kOutputBytes,
    .work_bytes = 1 << 20};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using fuzz::require;
  const std::string_view source(reinterpret_cast<const char*>(data), size);
  const auto parsed = model::ChatTemplate::parse(source, kLimits);
  if (!parsed) {
    require(parsed.error().message.starts_with("chat template"));
    require(parsed.error().code != Errc::internal);
    return 0;
  }
  require(size <= kLimits.template_bytes);
  const model::ChatMessage messages[] = {
      {"system", " Be\nbrief. "}, {"user", "{{ x }} \xF0\x9F\x98\x80</think>"}, {"assistant", ""}};
  for (const bool prompt : {true, false}) {
    const auto first = parsed->render(messages, prompt, "<s>", "</s>");
    const auto second = parsed->render(messages, prompt, "<s>", "</s>");
    require(first.has_value() == second.has_value());
    if (first) {
      require(*first == *second);
      require(first->size() <= kOutputBytes);
    } else {
      require(first.error().message == second.error().message);
      require(first.error().message.find("line ") != std::string::npos);
      require(first.error().code != Errc::internal);
    }
  }
  return 0;
}
