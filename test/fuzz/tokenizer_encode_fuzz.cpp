// Any bytes as text: the pieces are the text, the ids are those of the plain definition of BPE, and they
// spell the text.

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/detokenizer.hpp"
#include "test/fuzz/fuzz_support.hpp"
#include "test/support/byte_tokenizer.hpp"

namespace {

using namespace helios;
using fuzz::require;
using Merges = std::vector<std::pair<std::string, std::string>>;
using Ids = std::vector<std::int32_t>;

constexpr std::size_t kMaxText = 400;  // the definition is cubic

const Merges& merges() {
  static const Merges kMerges = {{"a", "b"},       {"b", "a"},       {" ", "a"}, {"ab", "ab"},
                                 {"aa", "a"},      {"a", "a"},       {" ", " "}, {" a", "b"},
                                 {"\xC3", "\xA9"}, {"\xF0", "\x9F"}, {"!", "!"}, {"!!", "!!"}};
  return kMerges;
}

const model::Tokenizer& tokenizer() {
  // The planted fault: two merges in the wrong order.
  static const auto kTokenizer = [] {
    Merges used = merges();
    if (fuzz::kPlantedFault) std::swap(used[0], used[1]);
    return test::byte_tokenizer(used);
  }();
  return *kTokenizer;
}

std::vector<std::string> by_definition(std::string_view piece) {
  std::vector<std::string> symbols;
  for (const char c : piece) symbols.emplace_back(1, c);
  for (bool merged = true; merged;) {
    merged = false;
    for (const auto& [left, right] : merges()) {
      for (std::size_t i = 0; i + 1 < symbols.size() && !merged; ++i) {
        if (symbols[i] != left || symbols[i + 1] != right) continue;
        symbols[i] += right;
        symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(i) + 1);
        merged = true;
      }
      if (merged) break;
    }
  }
  return symbols;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size > kMaxText) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  require(tokenizer().decode(tokenizer().encode(text, true), true) == text);
  const Ids ids = tokenizer().encode(text, false);
  require(tokenizer().decode(ids) == text);
  if (text.find("<tag>") == std::string_view::npos) {
    std::vector<std::string> expected;
    std::string whole;
    model::PieceReader pieces(model::PreTokenizer::smollm, text);
    while (const auto piece = pieces.next()) {
      require(!piece->empty());
      whole += *piece;
      for (std::string& symbol : by_definition(*piece)) expected.push_back(std::move(symbol));
    }
    require(whole == text);
    require(ids.size() == expected.size());
    for (std::size_t i = 0; i < ids.size(); ++i) require(tokenizer().bytes_of(ids[i]) == expected[i]);
  }
  model::StreamDetokenizer stream(std::shared_ptr<const model::Tokenizer>(&tokenizer(), [](const auto*) {}));
  std::string shown;
  for (const std::int32_t id : ids) shown += stream.push(id);
  shown += stream.flush();
  for (std::string_view rest = shown; !rest.empty();) {
    const model::CodePoint point = model::decode_code_point(rest);
    require(point.valid);  // what leaves is always UTF-8
    rest.remove_prefix(point.length);
  }
  return 0;
}
