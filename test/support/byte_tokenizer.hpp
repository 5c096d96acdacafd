#pragma once
// Tokenizers that need no model file.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "model/tokenizer.hpp"

namespace helios::test {

/// The byte-level spelling of `bytes`.
inline std::string printable(const std::string& bytes) {
  std::string out;
  for (const char c : bytes) model::append_printable(out, static_cast<unsigned char>(c));
  return out;
}

/// 256 byte tokens (id = byte), then the results of `merges` (pairs of raw bytes, best first), then the
/// control tokens
/// <|end|> and <|end|><|end|>, then the user-defined token <tag>.
inline std::shared_ptr<const model::Tokenizer> byte_tokenizer(
    const std::vector<std::pair<std::string, std::string>>& merges = {},
    model::PreTokenizer pretokenizer = model::PreTokenizer::smollm) {
  std::vector<std::string> tokens;
  for (int byte = 0; byte < 256; ++byte) tokens.push_back(printable(std::string(1, static_cast<char>(byte))));
  std::vector<std::pair<std::string, std::string>> spelt;
  for (const auto& [left, right] : merges) {
    spelt.emplace_back(printable(left), printable(right));
    tokens.push_back(printable(left + right));
  }
  std::vector<std::int64_t> types(tokens.size(), 1);
  for (const char* name : {"<|end|>", "<|end|><|end|>"}) {
    tokens.emplace_back(name);
    types.push_back(3);
  }
  tokens.emplace_back("<tag>");
  types.push_back(4);
  model::TokenizerParts parts;
  parts.tokens = tokens;
  parts.token_types = types;
  const std::vector<model::MergeText> views(spelt.begin(), spelt.end());
  parts.merges = views;
  parts.pretokenizer = pretokenizer;
  return model::Tokenizer::create(parts).value();
}

}  // namespace helios::test
