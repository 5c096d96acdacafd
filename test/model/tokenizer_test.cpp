#include "model/tokenizer.hpp"

#include <catch2/catch_test_macros.hpp>
#include <chrono>
#include <iostream>
#include <random>
#include <sstream>

#include "model/unicode_tables.hpp"
#include "test/support/byte_tokenizer.hpp"
#include "test/support/gguf_writer.hpp"
#include "test/support/model_path.hpp"
#include "test/support/tokenizer_lines.hpp"

using namespace helios;
using model::PieceReader;
using model::PreTokenizer;
using model::Tokenizer;

namespace {

using Strings = std::vector<std::string>;
using Ids = std::vector<std::int32_t>;

Strings pieces(std::string_view text, const PreTokenizer& kind = PreTokenizer::smollm) {
  Strings out;
  PieceReader reader(kind, text);
  while (const auto piece = reader.next()) out.emplace_back(*piece);
  return out;
}

// Merges by definition: the best pair, leftmost first, over and over.
Ids naive_merge(Ids symbols, const std::vector<std::pair<std::string, std::string>>& merges,
                const Tokenizer& tokenizer) {
  while (true) {
    std::size_t best_rank = merges.size();
    std::size_t best_at = 0;
    for (std::size_t i = 0; i + 1 < symbols.size(); ++i) {
      for (std::size_t rank = 0; rank < best_rank; ++rank) {
        if (tokenizer.bytes_of(symbols[i]) == merges[rank].first &&
            tokenizer.bytes_of(symbols[i + 1]) == merges[rank].second) {
          best_rank = rank;
          best_at = i;
        }
      }
    }
    if (best_rank == merges.size()) return symbols;
    symbols[best_at] = 256 + static_cast<std::int32_t>(best_rank);
    symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(best_at) + 1);
  }
}

std::shared_ptr<const Tokenizer> smollm2() {
  const auto path = test::smollm2_path();
  if (!path) return nullptr;
  const auto file = model::GgufFile::open(*path);
  if (!file) FAIL(file.error().message);
  const auto tokenizer = Tokenizer::from_gguf(**file);
  if (!tokenizer) FAIL(tokenizer.error().message);
  return *tokenizer;
}

}  // namespace

TEST_CASE("Unicode classes at their edges", "[model]") {
  CHECK(model::is_letter(U'a'));
  CHECK(!model::is_letter(U'['));
  CHECK(model::is_letter(0xAA));
  CHECK(!model::is_letter(0xAB));
  CHECK(model::is_letter(0x4E00));
  CHECK(!model::is_letter(0x0301));
  CHECK(!model::is_letter(0x10FFFF));
  CHECK(model::is_number(0x0660));
  CHECK(model::is_number(0xBD));
  CHECK(model::is_number(0x3007));
  CHECK(!model::is_number(U'a'));
  CHECK(model::is_space(0x85));
  CHECK(model::is_space(0x3000));
  CHECK(!model::is_space(0x200B));
  CHECK(!model::is_space(0x1C));
}

TEST_CASE("Pieces: words take one space, contractions and digits stand alone", "[model]") {
  CHECK(pieces("Hello world") == Strings{"Hello", " world"});
  CHECK(pieces("don't I'LL we're") == Strings{"don", "'t", " I", "'", "LL", " we", "'re"});
  CHECK(pieces("a  b") == Strings{"a", " ", " b"});
  CHECK(pieces("a \n b  ") == Strings{"a", " \n", " b", "  "});
  CHECK(pieces("x\ty") == Strings{"x", "\t", "y"});
  CHECK(pieces("x\n\ny") == Strings{"x", "\n", "\n", "y"});
  CHECK(pieces("!?x ...") == Strings{"!?", "x", " ..."});
  CHECK(pieces("in 2024") == Strings{"in", " ", "2", "0", "2", "4"});
  CHECK(pieces("in 2024", PreTokenizer::gpt2) == Strings{"in", " 2024"});
  CHECK(pieces("a  5") == Strings{"a", "  ", "5"});
  CHECK(pieces("a  5", PreTokenizer::gpt2) == Strings{"a", " ", " 5"});
  CHECK(pieces("x²½") == Strings{"x", "²", "½"});
  CHECK(pieces("日本 語") == Strings{"日本", " 語"});
  CHECK(pieces("e\xCC\x81!") == Strings{"e", "\xCC\x81!"});  // a combining mark is no letter
  CHECK(pieces("").empty());
  CHECK(pieces("a\xFF\xC3") == Strings{"a", "\xFF\xC3"});
}

TEST_CASE("Pieces of Llama 3 and Qwen 2: any case, any lead, counted digits, line breaks", "[model]") {
  const auto llama3 = [](std::string_view text) { return pieces(text, PreTokenizer::llama3); };
  const auto qwen2 = [](std::string_view text) { return pieces(text, PreTokenizer::qwen2); };
  CHECK(llama3("Hello world") == Strings{"Hello", " world"});
  CHECK(llama3("'Re'LLx it'S") == Strings{"'Re", "'LL", "x", " it", "'S"});
  CHECK(llama3("x'\u017F y") == Strings{"x", "'\u017F", " y"});
  CHECK(llama3("12345 6") == Strings{"123", "45", " ", "6"});
  CHECK(qwen2("12345 6") == Strings{"1", "2", "3", "4", "5", " ", "6"});
  CHECK(llama3("\t\tx \u00A0b\u3000c") == Strings{"\t", "\tx", " ", "\u00A0b", "\u3000c"});
  CHECK(llama3("a.b (c") == Strings{"a", ".b", " (", "c"});
  CHECK(llama3("!!\r\n x") == Strings{"!!\r\n", " x"});
  CHECK(llama3("a \n\n  b") == Strings{"a", " \n\n", " ", " b"});
  CHECK(llama3("  \n  ") == Strings{"  \n", "  "});
  CHECK(llama3("\n\nx") == Strings{"\n\n", "x"});
  CHECK(llama3("").empty());
  CHECK(llama3("a\xFF\xC3") == Strings{"a", "\xFF\xC3"});
}

TEST_CASE("Tokenizer: a piece that is a token goes before the merges only where the family says so",
          "[model]") {
  const Strings tokens = {"a", "b", "c", "ab", "bc", "abc"};
  const std::vector<model::MergeText> merges = {{"b", "c"}, {"a", "b"}};  // nothing merges to abc
  model::TokenizerParts parts;
  parts.tokens = tokens;
  parts.merges = merges;
  CHECK(Tokenizer::create(parts).value()->encode("abc ab", false) == Ids{0, 4, 3});
  parts.whole_tokens = true;
  CHECK(Tokenizer::create(parts).value()->encode("abc ab", false) == Ids{5, 3});
}

TEST_CASE("Tokenizer: the names in tokenizer.ggml.pre", "[model]") {
  using model::pretokenizer_by_name;
  CHECK(pretokenizer_by_name("gpt-2").value().rules == PreTokenizer::gpt2);
  CHECK(pretokenizer_by_name("smollm").value().rules == PreTokenizer::smollm);
  CHECK(pretokenizer_by_name("qwen2").value().rules == PreTokenizer::qwen2);
  CHECK(!pretokenizer_by_name("qwen2").value().add_bos);
  for (const char* name : {"llama-bpe", "llama3", "llama-v3"}) {
    const auto named = pretokenizer_by_name(name).value();
    CHECK(named.rules == PreTokenizer::llama3);
    CHECK(named.whole_tokens);
    CHECK(named.add_bos);
  }
}

TEST_CASE("Tokenizer: unknown pre-tokenizers and models are refused by name", "[model]") {
  const auto refused = model::pretokenizer_by_name("deepseek-coder");
  REQUIRE(!refused);
  CHECK(refused.error().code == Errc::unsupported);
  CHECK(refused.error().message.find("'deepseek-coder'") != std::string::npos);

  const auto from = [](test::GgufWriter writer) {
    const std::string bytes = writer.bytes();
    const auto file = model::GgufFile::parse(model::memory_source(std::as_bytes(std::span(bytes))), "t.gguf");
    return Tokenizer::from_gguf(**file);
  };
  using W = test::GgufWriter;
  CHECK(from(W().key("tokenizer.ggml.model", "t5")).error().message.find("'t5'") != std::string::npos);
  CHECK(from(W().key("tokenizer.ggml.model", "gpt2").key("tokenizer.ggml.pre", "tekken")).error().code ==
        Errc::unsupported);
  CHECK(from(W()).error().message.find("tokenizer.ggml.model") != std::string::npos);
  const auto base = [] {
    return W()
        .key("tokenizer.ggml.model", "gpt2")
        .key("tokenizer.ggml.pre", "smollm")
        .key("tokenizer.ggml.tokens", Strings{"a", "b", "ab"});
  };
  CHECK(from(base().key("tokenizer.ggml.merges", Strings{"a b"})).has_value());
  for (const char* merge : {"ab", "a c", "b a"}) {
    const auto made = from(base().key("tokenizer.ggml.merges", Strings{merge}));
    REQUIRE(!made);
    CHECK(made.error().message.find("merge 0") != std::string::npos);
  }
  CHECK(!from(base().key("tokenizer.ggml.merges", Strings{"a b", "a b"})));
  CHECK(!from(base()
                  .key("tokenizer.ggml.merges", Strings{"a b"})
                  .key("tokenizer.ggml.eos_token_id", W::kU32, W::raw(std::uint32_t{3}))));
  CHECK(!from(W().key("tokenizer.ggml.model", "gpt2")
                  .key("tokenizer.ggml.pre", "smollm")
                  .key("tokenizer.ggml.tokens", Strings{"a", "a"})
                  .key("tokenizer.ggml.merges", Strings{})));
}

TEST_CASE("Tokenizer: special tokens are matched longest first, and only when asked", "[model]") {
  const auto tokenizer = test::byte_tokenizer();
  const std::int32_t one = *tokenizer->vocabulary().find("<|end|>");
  const std::int32_t two = *tokenizer->vocabulary().find("<|end|><|end|>");
  const std::int32_t tag = *tokenizer->vocabulary().find("<tag>");
  CHECK(tokenizer->encode("x<|end|>y", true) == Ids{'x', one, 'y'});
  CHECK(tokenizer->encode("<|end|><|end|><|end|>", true) == Ids{two, one});
  CHECK(tokenizer->encode("<|end|", true) == Ids{'<', '|', 'e', 'n', 'd', '|'});
  CHECK(tokenizer->encode("<|end|>", false).size() == 7);
  CHECK(tokenizer->encode("a<tag>", false) == Ids{'a', tag});
  CHECK(tokenizer->is_special(one));
  CHECK(!tokenizer->is_special(tag));
  CHECK(tokenizer->is_end(one));
  CHECK(!tokenizer->is_end(two));
  CHECK(tokenizer->decode(Ids{'x', one, 'y'}) == "xy");
  CHECK(tokenizer->decode(Ids{'x', one, 'y'}, true) == "x<|end|>y");
  CHECK(tokenizer->bytes_of(-1).empty());
  CHECK(tokenizer->bytes_of(tokenizer->vocab_size()).empty());
}

TEST_CASE("Tokenizer: both ways of merging give what the definition gives", "[model]") {
  const std::vector<std::pair<std::string, std::string>> merges = {
      {"a", "b"},  {"b", "a"},    {"a", "a"},   {"ab", "ab"}, {"aa", "a"}, {"b", "b"},
      {"aa", "b"}, {"abab", "a"}, {"bb", "aa"}, {"ba", "ba"}, {"aa", "aa"}};
  const auto tokenizer = test::byte_tokenizer(merges);
  std::mt19937 rng(3);
  for (int round = 0; round < 400; ++round) {
    std::string text(std::uniform_int_distribution<std::size_t>(1, 90)(rng),
                     'a');  // both sides of the heap's threshold
    for (char& c : text) c = static_cast<char>('a' + std::uniform_int_distribution<int>(0, 1)(rng));
    CHECK(tokenizer->encode(text, false) == naive_merge(Ids(text.begin(), text.end()), merges, *tokenizer));
  }
}

TEST_CASE("Tokenizer: a long text gives the ids of its parts", "[model]") {
  const std::vector<std::pair<std::string, std::string>> merges = {
      {"a", "b"}, {" ", "a"}, {"b", "a"}, {"ab", "ba"}};
  const auto tokenizer = test::byte_tokenizer(merges);
  std::mt19937 rng(11);
  std::string text;
  Ids wanted;
  for (int i = 0; i < 3000;
       ++i) {                // words that repeat, and some that do not: the table of known pieces is in use
    std::string word = "1";  // a digit stands alone, so the parts cannot merge with each other
    for (std::size_t length = std::uniform_int_distribution<std::size_t>(0, 9)(rng); length > 0; --length) {
      word += " ab"[std::uniform_int_distribution<std::size_t>(0, 2)(rng)];
    }
    text += word;
    const Ids ids = tokenizer->encode(word, false);
    wanted.insert(wanted.end(), ids.begin(), ids.end());
  }
  CHECK(tokenizer->encode(text, false) == wanted);
}

TEST_CASE("Tokenizer: the bytes come back, whatever they are", "[model]") {
  const auto tokenizer = test::byte_tokenizer({{" ", "a"}, {"\xC3", "\xA9"}, {"\n", "\n"}});
  std::mt19937 rng(5);
  for (int round = 0; round < 500; ++round) {
    std::string text(std::uniform_int_distribution<std::size_t>(0, 60)(rng), ' ');
    for (char& c : text) c = static_cast<char>(std::uniform_int_distribution<int>(0, 255)(rng));
    CHECK(tokenizer->decode(tokenizer->encode(text, false)) == text);
  }
}

TEST_CASE("Tokenizer: the vocabulary's hash is FNV-1a of its spellings", "[model]") {
  model::TokenizerParts parts;
  const Strings tokens = {"a", "b"};
  parts.tokens = tokens;
  // 61 00 62 00, by hand from the definition
  std::uint64_t hash = 0xCBF29CE484222325;
  for (const unsigned char byte : {0x61, 0x00, 0x62, 0x00}) hash = (hash ^ byte) * 0x100000001B3;
  std::ostringstream hex;
  hex << std::hex << hash;
  CHECK(Tokenizer::create(parts).value()->vocab_hash() ==
        std::string(16 - hex.str().size(), '0') + hex.str());
}

TEST_CASE("Tokenizer: SmolLM2's ids are those of the tokenizers library on 2,000 lines", "[model][models]") {
  const auto tokenizer = smollm2();
  if (!tokenizer) {
    std::cout << "SKIPPED: tokenizer parity (the model is absent: tools/setup.sh fetches it)\n";
    return;
  }
  int lines = 0;
  int wrong = 0;
  for (const test::TokenizerLine& line : test::tokenizer_lines()) {
    ++lines;
    if (tokenizer->encode(line.text, line.special) == line.smollm2) continue;
    if (++wrong <= 5) {
      UNSCOPED_INFO("line " << lines << ": " << line.escaped);
    }
  }
  CHECK(lines == 2000);
  CHECK(wrong == 0);
}

TEST_CASE("Tokenizer: SmolLM2's special tokens", "[model][models]") {
  const auto tokenizer = smollm2();
  if (!tokenizer) {
    std::cout << "SKIPPED: SmolLM2's special tokens (the model is absent: tools/setup.sh fetches it)\n";
    return;
  }
  CHECK(tokenizer->vocab_size() == 49152);
  CHECK(tokenizer->bos_text() == "<|im_start|>");
  CHECK(tokenizer->eos_text() == "<|im_end|>");
  CHECK(!tokenizer->add_bos());
  CHECK(tokenizer->is_end(2));
  CHECK(tokenizer->is_end(0));
  CHECK(!tokenizer->is_end(1));
  CHECK(tokenizer->encode("<|im_start|>user\n", true)[0] == 1);
  CHECK(tokenizer->encode("<|im_start|>user\n", false)[0] != 1);
}

TEST_CASE("Tokenizer: one long piece costs no more than n log n", "[model]") {
  const auto tokenizer =
      test::byte_tokenizer({{"a", "a"}, {"aa", "aa"}, {"aaaa", "aaaa"}, {"b", "a"}, {"a", "b"}});
  const auto seconds = [&](std::size_t size) {
    std::string text;
    for (std::size_t i = 0; i < size; ++i) text += i % 7 == 3 ? 'b' : 'a';
    double best = 1e9;
    for (int run = 0; run < 3; ++run) {
      const auto begin = std::chrono::steady_clock::now();
      CHECK(!tokenizer->encode(text, true).empty());
      best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    }
    return best;
  };
  const double small = seconds(50'000);
  const double large = seconds(400'000);  // 8 times the text: 64 times the time if it were quadratic
  CHECK(large < 30 * small);
}
