#include "model/detokenizer.hpp"

#include <catch2/catch_test_macros.hpp>

#include "test/support/byte_tokenizer.hpp"

using namespace helios;
using model::StreamDetokenizer;

namespace {

const std::string kBad = "\xEF\xBF\xBD";

// The text of `bytes`, given one byte at a time and then all at once: both must agree.
std::string decoded(const std::string& bytes) {
  const auto tokenizer = test::byte_tokenizer();
  StreamDetokenizer slow(tokenizer);
  std::string text;
  for (const char c : bytes) text += slow.push_bytes(std::string(1, c));
  text += slow.flush();
  StreamDetokenizer fast(tokenizer);
  std::string at_once = fast.push_bytes(bytes);
  at_once += fast.flush();
  CHECK(text == at_once);
  return text;
}

}  // namespace

TEST_CASE("StreamDetokenizer: a code point leaves when its last byte has come", "[model]") {
  const auto tokenizer = test::byte_tokenizer();
  StreamDetokenizer stream(tokenizer);
  const std::string text = "a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80z";  // aé€😀z
  const auto ids = tokenizer->encode(text, false);
  REQUIRE(ids.size() == text.size());  // no merges: one token a byte
  std::vector<std::string> steps;
  for (const auto id : ids) steps.push_back(stream.push(id));
  CHECK(steps == std::vector<std::string>{"a", "", "é", "", "", "€", "", "", "", "😀", "z"});
  CHECK(stream.flush().empty());
}

TEST_CASE("StreamDetokenizer: wrong bytes become U+FFFD, one per maximal part", "[model]") {
  CHECK(decoded("a\xFFz") == "a" + kBad + "z");
  CHECK(decoded("\x80\x80") == kBad + kBad);
  CHECK(decoded("\xE2\x82z") == kBad + "z");                        // cut short by another character
  CHECK(decoded("\xE2\x82\xE2\x82\xAC") == kBad + "€");             // … by a whole one
  CHECK(decoded("\xC0\xAF") == kBad + kBad);                        // over-long
  CHECK(decoded("\xE0\x80\xAF") == kBad + kBad + kBad);             // over-long
  CHECK(decoded("\xED\xA0\x80") == kBad + kBad + kBad);             // surrogate
  CHECK(decoded("\xF4\x90\x80\x80") == kBad + kBad + kBad + kBad);  // above U+10FFFF
  CHECK(decoded("\xF0\x9F\x98") == kBad);                           // unfinished at the end
  CHECK(decoded("ok\xF0") == "ok" + kBad);
}

TEST_CASE("StreamDetokenizer: control tokens and ids outside the vocabulary give no text", "[model]") {
  const auto tokenizer = test::byte_tokenizer();
  const auto special = tokenizer->vocabulary().find("<|end|>");
  REQUIRE(special);
  StreamDetokenizer quiet(tokenizer);
  CHECK(quiet.push(*special).empty());
  CHECK(quiet.push(-1).empty());
  CHECK(quiet.push(1 << 30).empty());
  StreamDetokenizer verbose(tokenizer, true);
  CHECK(verbose.push(*special) == "<|end|>");
}
