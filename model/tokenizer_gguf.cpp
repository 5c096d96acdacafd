// Tokenizers in GGUF files: tokenizer.ggml.*.

#include <utility>

#include "model/tokenizer.hpp"

namespace helios::model {
namespace {

Result<std::optional<std::int32_t>> optional_id(const GgufFile& file, std::string_view key) {
  if (!file.has(key)) return std::optional<std::int32_t>();
  auto id = file.u32(key);
  if (!id) return id.error();
  // Some converters write -1 for "none".
  if (*id > static_cast<std::uint32_t>(Vocabulary::kMaxTokens)) {
    return fail(Errc::bad_file, std::string(key) + " is " + std::to_string(*id) + ", which is no token");
  }
  return std::optional(static_cast<std::int32_t>(*id));
}

// What both kinds have. `add_bos` stands where the file is silent.
Result<void> read_common(const GgufFile& file, bool add_bos, TokenizerParts& parts) {
  auto tokens = file.strings("tokenizer.ggml.tokens");
  if (!tokens) return tokens.error();
  parts.tokens = *tokens;
  if (file.has("tokenizer.ggml.token_type")) {
    auto types = file.integers("tokenizer.ggml.token_type");
    if (!types) return types.error();
    parts.token_types = *types;
  }
  const std::pair<std::string_view, std::optional<std::int32_t>*> ids[] = {
      {"tokenizer.ggml.unknown_token_id", &parts.unknown},
      {"tokenizer.ggml.bos_token_id", &parts.bos},
      {"tokenizer.ggml.eos_token_id", &parts.eos},
      {"tokenizer.ggml.eot_token_id", &parts.eot},
  };
  for (const auto& [key, out] : ids) {
    auto id = optional_id(file, key);
    if (!id) return id.error();
    *out = *id;
  }
  auto add = file.boolean_or("tokenizer.ggml.add_bos_token", add_bos);
  if (!add) return add.error();
  parts.add_bos = *add;
  return {};
}

Result<std::shared_ptr<const Tokenizer>> byte_level(const GgufFile& file) {
  auto pre = file.str("tokenizer.ggml.pre");
  if (!pre) return pre.error();
  auto pretokenizer = pretokenizer_by_name(*pre);
  if (!pretokenizer) return pretokenizer.error();
  TokenizerParts parts;
  parts.pretokenizer = pretokenizer->rules;
  parts.whole_tokens = pretokenizer->whole_tokens;
  if (pretokenizer->nfc) parts.normalizer.add_nfc();
  if (auto read = read_common(file, pretokenizer->add_bos, parts); !read) return read.error();
  auto spelt = file.strings("tokenizer.ggml.merges");
  if (!spelt) return spelt.error();
  std::vector<MergeText> merges;
  merges.reserve(spelt->size());
  for (const std::string_view merge : *spelt) {
    const std::size_t gap = merge.find(' ');  // no token has a raw space: byte-level BPE spells it U+0120
    if (gap == std::string_view::npos) {
      return fail(Errc::bad_file, "tokenizer: merge " + std::to_string(merges.size()) +
                                      " is not two tokens: the file is damaged");
    }
    merges.push_back({merge.substr(0, gap), merge.substr(gap + 1)});
  }
  parts.merges = merges;
  auto add_prefix = file.boolean_or("tokenizer.ggml.add_space_prefix", false);
  if (!add_prefix) return add_prefix.error();
  if (*add_prefix) parts.spaces.prefix = SpaceRule::Prefix::always;
  return Tokenizer::create(parts);
}

// SentencePiece's BPE. The space in front of a text is put there even if the text begins with one.
Result<std::shared_ptr<const Tokenizer>> sentence_piece(const GgufFile& file) {
  TokenizerParts parts;
  parts.model = TokenModel::scored_bpe;
  parts.pretokenizer = PreTokenizer::text;
  if (auto read = read_common(file, true, parts); !read) return read.error();
  auto scores = file.floats("tokenizer.ggml.scores");
  if (!scores) return scores.error();
  parts.scores = *scores;
  auto add_prefix = file.boolean_or("tokenizer.ggml.add_space_prefix", true);
  if (!add_prefix) return add_prefix.error();
  parts.strip_first_space = *add_prefix;
  if (*add_prefix) parts.normalizer.add_prepend(std::string(kSpaceMark));
  parts.normalizer.add_replace(" ", std::string(kSpaceMark));
  return Tokenizer::create(parts);
}

}  // namespace

Result<std::shared_ptr<const Tokenizer>> Tokenizer::from_gguf(const GgufFile& file) {
  auto model = file.str("tokenizer.ggml.model");
  if (!model) return model.error();
  if (*model == "gpt2") return byte_level(file);
  if (*model == "llama") return sentence_piece(file);
  return fail(Errc::unsupported,
              "tokenizer.ggml.model is '" + model->substr(0, 80) +
                  "': only byte-level BPE (gpt2) and SentencePiece BPE (llama) are known; use a "
                  "model with such a tokenizer");
}

}  // namespace helios::model
