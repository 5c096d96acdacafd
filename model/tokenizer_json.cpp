// tokenizer.json: byte-level BPE.

#include <algorithm>
#include <map>

#include "model/json_object.hpp"
#include "model/tokenizer.hpp"

namespace helios::model {

namespace json = boost::json;

Result<std::shared_ptr<const Tokenizer>> Tokenizer::from_tokenizer_json(const std::string& path,
                                                                        const HuggingFaceIds& ids) {
  const Result<JsonObject> file = JsonObject::read(path);
  if (!file) return file.error();
  const Result<JsonObject> bpe = file->object_or_empty("model");
  if (!bpe) return bpe.error();
  const json::value* vocab = bpe->find("vocab");
  const json::value* merges = bpe->find("merges");
  if (vocab == nullptr || !vocab->is_object() || merges == nullptr || !merges->is_array())
    return fail(Errc::unsupported, path + ": only byte-level BPE is known");
  std::map<std::int64_t, std::pair<std::string, int>> by_id;
  for (const auto& [text, id] : vocab->get_object()) {
    if (!id.is_int64()) return file->bad("model", "a vocabulary of ids");
    by_id[id.get_int64()] = {std::string(text), 1};
  }
  if (const json::value* added = file->find("added_tokens"); added != nullptr && added->is_array()) {
    for (const json::value& one : added->get_array()) {
      const json::object* token = one.if_object();
      if (token == nullptr) return file->bad("added_tokens", "a list of objects");
      const json::value* id = token->if_contains("id");
      const json::value* text = token->if_contains("content");
      const json::value* special = token->if_contains("special");
      if (id == nullptr || !id->is_int64() || text == nullptr || !text->is_string())
        return file->bad("added_tokens", "a list of tokens");
      const bool control = special != nullptr && special->is_bool() && special->get_bool();
      by_id[id->get_int64()] = {std::string(text->get_string()), control ? 3 : 4};
    }
  }
  std::vector<std::string> tokens;
  std::vector<std::int64_t> types;
  for (const auto& [id, token] : by_id) {
    if (id != static_cast<std::int64_t>(tokens.size()))
      return fail(Errc::bad_file, path + ": its ids have a hole at " + std::to_string(tokens.size()));
    tokens.push_back(token.first);
    types.push_back(token.second);
  }
  while (static_cast<std::int64_t>(tokens.size()) < ids.vocab_rows &&
         tokens.size() < Vocabulary::kMaxTokens) {
    tokens.push_back("[PAD" + std::to_string(tokens.size()) + "]");
    types.push_back(5);
  }
  std::vector<std::pair<std::string, std::string>> pairs;
  for (const json::value& merge : merges->get_array()) {
    const json::string* text = merge.if_string();
    const json::array* pair = merge.if_array();
    if (const std::size_t gap = text != nullptr ? text->find(' ') : std::string::npos;
        gap != std::string::npos) {
      const std::string_view both = *text;
      pairs.emplace_back(both.substr(0, gap), both.substr(gap + 1));
    } else if (pair != nullptr && pair->size() == 2 && (*pair)[0].is_string() && (*pair)[1].is_string()) {
      pairs.emplace_back((*pair)[0].get_string(), (*pair)[1].get_string());
    } else {
      return bpe->bad("merges", "a list of pairs");
    }
  }
  const std::vector<MergeText> joined(pairs.begin(), pairs.end());
  TokenizerParts parts;
  parts.tokens = tokens;
  parts.token_types = types;
  parts.merges = joined;
  parts.pretokenizer = PreTokenizer::gpt2;
  const auto id_of = [&](const std::string& text, std::optional<std::int32_t> id) {
    const auto found = std::find(tokens.begin(), tokens.end(), text);
    if (!id && found != tokens.end()) id = static_cast<std::int32_t>(found - tokens.begin());
    return id;
  };
  parts.bos = id_of(ids.bos_token, ids.bos);
  parts.eos = id_of(ids.eos_token, ids.eos.empty() ? std::nullopt : std::optional(ids.eos.front()));
  parts.more_ends = ids.eos;
  const Result<JsonObject> post = file->object_or_empty("post_processor");
  if (!post) return post.error();
  const json::value* single = post->find("single");
  const json::array* pieces = single != nullptr ? single->if_array() : nullptr;
  const bool prefixed = pieces != nullptr && !pieces->empty() && pieces->front().is_object() &&
                        pieces->front().get_object().contains("SpecialToken");
  parts.add_bos = ids.add_bos.value_or(prefixed);
  return create(parts);
}

}  // namespace helios::model
