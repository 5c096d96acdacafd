// Every family of tokenizers against its own library, on the 2,000 lines of test/data/tokenizer.

#include <boost/json.hpp>
#include <catch2/catch_test_macros.hpp>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <random>
#include <span>

#include "model/detokenizer.hpp"
#include "model/json_text.hpp"
#include "model/tokenizer.hpp"
#include "test/support/tokenizer_lines.hpp"

using namespace helios;
using model::Tokenizer;
using TokenizerPtr = std::shared_ptr<const Tokenizer>;

namespace {

const std::string kFolder = HELIOS_TEST_DATA "/tokenizer/";

std::uint32_t fnv1a(std::span<const unsigned char> bytes) {
  std::uint32_t hash = 0x811C9DC5;
  for (const unsigned char byte : bytes) hash = (hash ^ byte) * 0x01000193;
  return hash;
}

std::uint32_t hash_of(const std::vector<std::int32_t>& ids) {
  std::vector<unsigned char> bytes(ids.size() * sizeof(std::int32_t));
  if (!bytes.empty()) std::memcpy(bytes.data(), ids.data(), bytes.size());
  return fnv1a(bytes);
}

std::uint32_t hash_of(const std::string& text) {
  return fnv1a({reinterpret_cast<const unsigned char*>(text.data()), text.size()});
}

struct Wrong {
  int ids = 0;
  int texts = 0;
};

// Encodes and decodes all lines and compares with `name`.hashes; the first few differences are reported.
Wrong compare(const Tokenizer& tokenizer, const std::string& name) {
  Wrong wrong;
  std::ifstream hashes(kFolder + name + ".hashes");
  const auto lines = test::tokenizer_lines();
  REQUIRE(lines.size() == 2000);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    std::uint32_t ids_hash = 0;
    std::uint32_t text_hash = 0;
    hashes >> std::hex >> ids_hash >> text_hash;
    REQUIRE(hashes);
    const auto ids = tokenizer.encode(lines[i].text, lines[i].special);
    std::string shown;
    for (const std::int32_t id : ids) shown += " " + std::to_string(id);
    const bool ids_differ = hash_of(ids) != ids_hash;
    if (ids_differ && ++wrong.ids <= 5)
      WARN("line " << i + 1 << " has other ids: " << lines[i].escaped << " ->" << shown);
    if (!ids_differ && hash_of(tokenizer.decode(ids)) != text_hash && ++wrong.texts <= 5)
      WARN("line " << i + 1 << " decodes otherwise: " << lines[i].escaped << " ->" << shown << " -> ["
                   << tokenizer.decode(ids) << "]");
  }
  return wrong;
}

TokenizerPtr from_json(const std::string& name, const model::HuggingFaceIds& ids = {}) {
  const auto made = Tokenizer::from_tokenizer_json(kFolder + name + ".json", ids);
  if (!made) FAIL(made.error().message);
  return *made;
}

TokenizerPtr from_gguf(const std::string& path) {
  const auto file = model::GgufFile::open(path);
  if (!file) FAIL(file.error().message);
  const auto made = Tokenizer::from_gguf(**file);
  if (!made) FAIL(made.error().message);
  return *made;
}

}  // namespace

TEST_CASE("Families: tokenizer.json gives the ids and texts of the tokenizers library", "[model]") {
  for (const char* name : {"gpt2", "llama3", "qwen2", "llama2", "llama2_metaspace", "unigram"}) {
    const Wrong wrong = compare(*from_json(name), name);
    INFO(name);
    CHECK(wrong.ids == 0);
    CHECK(wrong.texts == 0);
  }
}

TEST_CASE("Families: a SentencePiece vocabulary in GGUF gives the ids and texts of SentencePiece",
          "[model]") {
  const auto tokenizer = from_gguf(kFolder + "sentencepiece.gguf");
  const Wrong wrong = compare(*tokenizer, "sentencepiece");
  CHECK(wrong.ids == 0);
  CHECK(wrong.texts == 0);
  CHECK(tokenizer->add_bos());
  CHECK(tokenizer->bos_text() == "<s>");
  CHECK(tokenizer->eos_text() == "</s>");
  CHECK(tokenizer->encode("<s>", true) == std::vector<std::int32_t>{1});
}

TEST_CASE("Families: a SentencePiece vocabulary is streamed in whole code points", "[model]") {
  const auto tokenizer = from_gguf(kFolder + "sentencepiece.gguf");
  const std::string text = "naïve 東京 😀 \n end";  // partly by byte tokens
  const auto ids = tokenizer->encode(text, false);
  model::StreamDetokenizer stream(tokenizer);
  std::string shown;
  for (const std::int32_t id : ids) {
    const std::string more = stream.push(id);
    if (!more.empty()) CHECK((static_cast<unsigned char>(more[0]) & 0xC0) != 0x80);
    shown += more;
  }
  shown += stream.flush();
  CHECK(shown == " " + text);  // an answer goes on from its prompt: the space stays
  CHECK(tokenizer->decode(ids) == text);
}

TEST_CASE("Families: ids beside tokenizer.json, and what the file says itself", "[model]") {
  const auto llama2 = from_json("llama2");
  CHECK(llama2->bos_id() == 1);
  CHECK(llama2->add_bos());
  CHECK(llama2->is_end(2));  // </s>, by its name
  CHECK(!from_json("qwen2")->add_bos());

  model::HuggingFaceIds ids;
  ids.eos = {801, 802};
  ids.bos_token = "<|im_start|>";
  ids.add_bos = false;
  ids.vocab_rows = 832;
  const auto qwen2 = from_json("qwen2", ids);
  CHECK(qwen2->vocab_size() == 832);
  CHECK(qwen2->vocabulary().spelling(831) == "[PAD831]");
  CHECK(qwen2->bos_text() == "<|im_start|>");
  CHECK(qwen2->eos_id() == 801);
  CHECK(qwen2->is_end(802));
  ids.eos = {832};
  CHECK(!Tokenizer::from_tokenizer_json(kFolder + "qwen2.json", ids));
  ids.eos = {};
  ids.eos_token = "<none>";
  const auto refused = Tokenizer::from_tokenizer_json(kFolder + "qwen2.json", ids);
  REQUIRE(!refused);
  CHECK(refused.error().message.find("'<none>'") != std::string::npos);
}

TEST_CASE("Families: both formats of one vocabulary have one hash", "[model]") {
  // The GGUF file has no <repo_name>: the first 1103 tokens are the same.
  const auto gguf = from_gguf(kFolder + "sentencepiece.gguf");
  const auto json = from_json("llama2");
  REQUIRE(json->vocab_size() == gguf->vocab_size() + 1);
  for (std::int32_t id = 0; id < gguf->vocab_size(); ++id) {
    CHECK(gguf->vocabulary().spelling(id) == json->vocabulary().spelling(id));
    CHECK(gguf->bytes_of(id) == json->bytes_of(id));
  }
}

TEST_CASE("Families: what a tokenizer.json has that is not known is refused by its name", "[model]") {
  const auto message = [](const std::string& members, const std::string& model) {
    const std::string text = "{" + members + R"("model":{)" + model + "}}";
    const auto made = Tokenizer::parse_tokenizer_json(text, "t.json");
    return made ? std::string("accepted") : made.error().message;
  };
  const std::string bytes = R"("pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false},)";
  const std::string bpe = R"("type":"BPE","vocab":{"a":0,"b":1,"ab":2},"merges":[["a","b"]])";
  CHECK(message(bytes, bpe) == "accepted");
  CHECK(message(bytes, R"("vocab":{"a":0,"b":1,"ab":2},"merges":["a b"])") == "accepted");

  struct Row {
    std::string members, model, named;
  };
  const Row rows[] = {
      {bytes, R"("type":"WordPiece")", "'WordPiece'"},
      {bytes, R"("type":"BPE","vocab":{"a":0},"merges":[["a","b"]])", "merge 0"},
      {bytes, R"("type":"BPE","vocab":{"a":0},"merges":["ab"])", "merge 0"},
      {bytes, R"("type":"BPE","vocab":{"a":-1},"merges":[])", "'a'"},
      {bytes, R"("type":"BPE","vocab":{"a":2097152},"merges":[])", "'a'"},
      {bytes, R"("type":"BPE","vocab":{"a":0,"b":0},"merges":[])", "two tokens"},
      {bytes, R"("type":"BPE","dropout":0.1,"vocab":{"a":0},"merges":[])", "dropout"},
      {bytes, R"("type":"BPE","end_of_word_suffix":"</w>","vocab":{"a":0},"merges":[])",
       "end_of_word_suffix"},
      {bytes + R"("normalizer":{"type":"BertNormalizer"},)", bpe, "'BertNormalizer'"},
      {bytes + R"("normalizer":{"type":"Sequence","normalizers":[{"type":"NFKC"}]},)", bpe, "'NFKC'"},
      {bytes + R"("normalizer":{"type":"Replace","pattern":{"Regex":" {2,}"},"content":" "},)", bpe,
       "' {2,}'"},
      {bytes + R"("post_processor":{"type":"BertProcessing"},)", bpe, "'BertProcessing'"},
      {bytes + R"("decoder":{"type":"WordPiece"},)", bpe, "'WordPiece'"},
      {bytes + R"("added_tokens":[{"id":3,"content":"x","single_word":true}],)", bpe, "single_word"},
      {R"("pre_tokenizer":{"type":"BertPreTokenizer"},)", bpe, "'BertPreTokenizer'"},
      {R"("pre_tokenizer":{"type":"Split","pattern":{"Regex":"\\d"},"behavior":"Isolated"},)", bpe, "'\\d'"},
      {"", R"("type":"Unigram","vocab":[["a"]])", "U+2581"},
  };
  for (const Row& row : rows) {
    const std::string said = message(row.members, row.model);
    INFO(said);
    CHECK(said.find(row.named) != std::string::npos);
    CHECK(said.starts_with("t.json"));
  }
  CHECK(!Tokenizer::parse_tokenizer_json("[]", "t.json"));
  CHECK(!Tokenizer::parse_tokenizer_json("{", "t.json"));
  CHECK(!Tokenizer::parse_tokenizer_json(std::string(100, '['), "t.json"));
  CHECK(Tokenizer::from_tokenizer_json("/nowhere/tokenizer.json").error().code == Errc::io_error);
}

TEST_CASE("Families: scores are read to the nearest double", "[model]") {
  std::mt19937_64 rng(9);
  for (int i = 0; i < 2000; ++i) {
    const double wanted = std::uniform_real_distribution<double>(-20, 0)(rng);
    char text[40];
    const auto end = std::to_chars(text, text + sizeof(text), wanted);  // the shortest that gives it back
    const auto read = model::parse_json({text, end.ptr}, "t.json", 4);
    REQUIRE(read.has_value());
    CHECK(read->as_double() == wanted);
  }
  CHECK(!model::parse_json("1 2", "t.json", 4).has_value());
  CHECK(!model::parse_json("[[[[[1]]]]]", "t.json", 4).has_value());
}

TEST_CASE("Families: scores that cannot be are refused", "[model]") {
  model::TokenizerParts parts;
  const std::vector<std::string> tokens = {"a", "b", "ab"};
  parts.tokens = tokens;
  parts.model = model::TokenModel::scored_bpe;
  parts.pretokenizer = model::PreTokenizer::text;
  CHECK(!Tokenizer::create(parts));
  const std::vector<double> scores = {0, 0, -1};
  parts.scores = scores;
  CHECK(Tokenizer::create(parts).value()->encode("aab", false) == std::vector<std::int32_t>{0, 2});
  const std::vector<double> bad = {0, 0, std::nan("")};
  parts.scores = bad;
  CHECK(!Tokenizer::create(parts));
}

TEST_CASE("Families: the pair's ids are those of the tokenizers library", "[model][models]") {
  const char* folder = std::getenv("HELIOS_PAIR_DIR");
  const std::filesystem::path path =
      std::filesystem::path(folder != nullptr ? folder : HELIOS_SOURCE_DIR "/models") /
      "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf";
  if (!std::filesystem::exists(path)) {
    std::cout << "SKIPPED: the pair's tokenizer parity (" << path.filename().string()
              << " is not in $HELIOS_PAIR_DIR)\n";
    return;
  }
  const Wrong wrong = compare(*from_gguf(path.string()), "qwen2_pair");
  CHECK(wrong.ids == 0);
  CHECK(wrong.texts == 0);
}
