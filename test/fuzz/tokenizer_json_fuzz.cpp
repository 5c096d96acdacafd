// Any bytes as a tokenizer.json: refused, or a tokenizer whose ids are all in its vocabulary, which makes the
// same of a text twice, and which more rows for its vocabulary do not change.

#include <string>
#include <string_view>

#include "model/detokenizer.hpp"
#include "test/fuzz/fuzz_support.hpp"

namespace {

using namespace helios;
using fuzz::require;

constexpr std::size_t kMaxInput = 1 << 14;
constexpr std::int32_t kMoreRows = 3;
constexpr std::string_view kTexts[] = {"", " ", "ab  abba 12 don't\r\n<x>  y",
                                       "e\xCC\x81\xF0\x9F\x98\x80 \xFF", "\xE2\x96\x81 b<x><x>"};

void check(const model::Tokenizer& tokenizer, const model::Tokenizer& longer) {
  for (const std::string_view text : kTexts) {
    for (const bool special : {false, true}) {
      const auto ids = tokenizer.encode(text, special);
      require(ids == longer.encode(text, special));
      std::string bytes;
      for (const std::int32_t id : ids) {
        require(tokenizer.vocabulary().contains(id));
        require(!tokenizer.bytes_of(id).empty());
        bytes += tokenizer.bytes_of(id);
      }
      const std::string decoded = tokenizer.decode(ids, true);
      require(decoded == bytes || (tokenizer.strips_first_space() && " " + decoded == bytes));
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size > kMaxInput) return 0;
  const std::string_view json(reinterpret_cast<const char*>(data), size);
  const auto tokenizer = model::Tokenizer::parse_tokenizer_json(json, "input");
  if (!tokenizer) {
    require(tokenizer.error().message.starts_with("input"));
    require(tokenizer.error().code != Errc::internal);
    return 0;
  }
  model::HuggingFaceIds ids;
  // The planted fault: a row is forgotten.
  ids.vocab_rows = (*tokenizer)->vocab_size() + kMoreRows - (fuzz::kPlantedFault ? 1 : 0);
  const auto longer = model::Tokenizer::parse_tokenizer_json(json, "input", ids);
  require(longer.has_value());
  require((*longer)->vocab_size() == (*tokenizer)->vocab_size() + kMoreRows);
  check(**tokenizer, **longer);
  return 0;
}
