// Tokenizers in Hugging Face's tokenizer.json. Its components are mapped to the rules of Tokenizer; what has
// no counterpart is refused by its name, because its ids would be wrong. Source of the format:
// https://huggingface.co/docs/tokenizers/components

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <unordered_set>
#include <utility>

#include "model/byte_source.hpp"
#include "model/json_text.hpp"
#include "model/tokenizer.hpp"

namespace helios::model {
namespace {

namespace json = boost::json;

constexpr std::size_t kMaxDepth = 32;
constexpr std::size_t kMaxParts = 64;    // of a Sequence
constexpr std::size_t kMaxHoles = 4096;  // ids without a token

std::string quoted(std::string_view text) {
  std::string out = "'";
  for (const char c : text.substr(0, 80)) out += (c >= ' ' && c <= '~') ? c : '?';
  return out + (text.size() > 80 ? "...'" : "'");
}

Error wrong(const std::string& where, const std::string& what) {
  return fail(Errc::bad_file, where + " " + what + ": the file is damaged");
}

Error unknown(const std::string& where, const std::string& what) {
  return fail(Errc::unsupported,
              where + ": " + what + " is not known here: ids would be wrong, so it is refused");
}

// A member, or nullptr where it is absent or null.
const json::value* member(const json::object& object, std::string_view name) {
  const json::value* value = object.if_contains(name);
  return value == nullptr || value->is_null() ? nullptr : value;
}

std::string_view view(const json::string& text) {
  return {text.data(), text.size()};
}

// A text member, or `fallback`.
std::string_view text_or(const json::object& object, std::string_view name, std::string_view fallback) {
  const json::value* value = member(object, name);
  return value != nullptr && value->is_string() ? view(value->get_string()) : fallback;
}

bool flag_or(const json::object& object, std::string_view name, bool fallback) {
  const json::value* value = member(object, name);
  return value != nullptr && value->is_bool() ? value->get_bool() : fallback;
}

// A component and the components of a Sequence, flat. `name` is the member of a Sequence that holds them.
struct Component {
  const json::object* object = nullptr;
  std::string_view type;
  std::string where;
};

Result<void> flatten(const json::value& value, std::string_view name, const std::string& where,
                     std::vector<Component>& out) {
  if (value.is_null()) return {};
  if (!value.is_object()) return wrong(where, "is no object");
  const json::object& object = value.get_object();
  const std::string_view type = text_or(object, "type", "");
  if (type != "Sequence") {
    if (out.size() >= kMaxParts) return fail(Errc::too_long, where + " has too many parts");
    out.push_back({&object, type, where});
    return {};
  }
  const json::value* parts = member(object, name);
  if (parts == nullptr || !parts->is_array())
    return wrong(where, "is a Sequence without " + std::string(name));
  for (const json::value& part : parts->get_array()) {
    if (auto done = flatten(part, name, where, out); !done) return done;
  }
  return {};
}

// {"String": "x"} of a Split or Replace; nullopt when it is a Regex.
std::optional<std::string_view> string_pattern(const json::object& object) {
  const json::value* pattern = member(object, "pattern");
  if (pattern == nullptr || !pattern->is_object()) return std::nullopt;
  const json::value* text = member(pattern->get_object(), "String");
  if (text == nullptr || !text->is_string()) return std::nullopt;
  return view(text->get_string());
}

std::string_view regex_pattern(const json::object& object) {
  const json::value* pattern = member(object, "pattern");
  return pattern != nullptr && pattern->is_object() ? text_or(pattern->get_object(), "Regex", "") : "";
}

struct KnownRegex {
  std::string_view regex;
  PreTokenizer rules;
};
constexpr std::array<KnownRegex, 3> kKnownRegexes{{
    {R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)", PreTokenizer::gpt2},
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     PreTokenizer::llama3},
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     PreTokenizer::qwen2},
}};

class Reader {
 public:
  Reader(std::string label, const HuggingFaceIds& ids) : label_(std::move(label)), ids_(ids) {}

  Result<std::shared_ptr<const Tokenizer>> run(const json::value& root) {
    if (!root.is_object()) return wrong(label_, "is no JSON object");
    const json::object& object = root.get_object();
    const json::value* model = member(object, "model");
    if (model == nullptr || !model->is_object()) return wrong(label_, "has no model");
    std::size_t tokens = 0;
    if (const json::value* vocab = member(model->get_object(), "vocab")) {
      if (vocab->is_object()) tokens += vocab->get_object().size();
      if (vocab->is_array()) tokens += vocab->get_array().size();
    }
    if (const json::value* added = member(object, "added_tokens"); added != nullptr && added->is_array())
      tokens += added->get_array().size();
    id_bound_ = static_cast<std::int64_t>(std::min(tokens + kMaxHoles, Vocabulary::kMaxTokens));
    using Step = Result<void> (Reader::*)(const json::object&);
    // The model last: whether a vocabulary is byte-level is said by the pre-tokenizer.
    for (const Step step :
         {&Reader::normalizer, &Reader::pretokenizer, &Reader::postprocessor, &Reader::decoder})
      if (auto done = (this->*step)(object); !done) return done.error();
    if (auto done = read_model(model->get_object()); !done) return done.error();
    if (auto done = added_tokens(object); !done) return done.error();
    if (auto done = settle_ids(); !done) return done.error();
    parts_.tokens = tokens_;
    parts_.token_types = types_;
    parts_.merges = merges_;
    parts_.scores = scores_;
    parts_.literal_rules = rules_;
    parts_.more_ends = ids_.eos;
    auto made = Tokenizer::create(parts_);
    if (!made) return fail(made.error().code, label_ + ": " + made.error().message);
    return *made;
  }

 private:
  std::string at(std::string_view place) const { return label_ + ": " + std::string(place); }

  Result<std::vector<Component>> components(const json::object& root, std::string_view name,
                                            std::string_view list) const {
    std::vector<Component> out;
    if (const json::value* value = root.if_contains(name)) {
      if (auto done = flatten(*value, list, at(name), out); !done) return done.error();
    }
    return out;
  }

  Result<void> normalizer(const json::object& root) {
    auto parts = components(root, "normalizer", "normalizers");
    if (!parts) return parts.error();
    for (const Component& part : *parts) {
      const json::object& object = *part.object;
      if (part.type == "NFC") {
        parts_.normalizer.add_nfc();
      } else if (part.type == "Lowercase") {
        parts_.normalizer.add_lowercase();
      } else if (part.type == "Prepend") {
        parts_.normalizer.add_prepend(std::string(text_or(object, "prepend", "")));
      } else if (part.type == "Replace") {
        const auto from = string_pattern(object);
        if (!from || from->empty())
          return unknown(part.where, "Replace of the expression " + quoted(regex_pattern(object)));
        parts_.normalizer.add_replace(std::string(*from), std::string(text_or(object, "content", "")));
      } else {
        return unknown(part.where, "the normalizer " + quoted(part.type));
      }
    }
    return {};
  }

  Result<void> byte_level(const Component& part, std::size_t index, std::optional<PreTokenizer>& words) {
    byte_level_ = true;
    if (flag_or(*part.object, "add_prefix_space", true)) {
      if (index > 0) return unknown(part.where, "ByteLevel with add_prefix_space behind another part");
      parts_.spaces.prefix = SpaceRule::Prefix::always;
    }
    if (!flag_or(*part.object, "use_regex", true)) return {};
    if (words) return unknown(part.where, "ByteLevel with use_regex behind a Split");
    words = PreTokenizer::gpt2;
    return {};
  }

  Result<void> metaspace(const Component& part, std::optional<PreTokenizer>& words) {
    const json::object& object = *part.object;
    if (text_or(object, "replacement", kSpaceMark) != kSpaceMark)
      return unknown(part.where,
                     "Metaspace with the replacement " + quoted(text_or(object, "replacement", "")));
    const bool prefix = flag_or(object, "add_prefix_space", true);  // of older files
    const std::string_view scheme = text_or(object, "prepend_scheme", prefix ? "always" : "never");
    if (scheme == "always") {
      parts_.spaces.prefix = SpaceRule::Prefix::always;
    } else if (scheme == "first") {
      parts_.spaces.prefix = SpaceRule::Prefix::first;
    } else if (scheme != "never") {
      return unknown(part.where, "Metaspace with the prepend_scheme " + quoted(scheme));
    }
    parts_.spaces.marks = true;
    words = PreTokenizer::text;
    if (flag_or(object, "split", true)) {
      words->whole = false;
      words->marks_only = true;
    }
    return {};
  }

  Result<void> pretokenizer(const json::object& root) {
    auto parts = components(root, "pre_tokenizer", "pretokenizers");
    if (!parts) return parts.error();
    std::optional<PreTokenizer> words;  // how what is between numbers is cut
    auto numbers = PreTokenizer::Numbers::stay;
    for (std::size_t i = 0; i < parts->size(); ++i) {
      const Component& part = (*parts)[i];
      const json::object& object = *part.object;
      if (byte_level_ || parts_.spaces.marks)
        return unknown(part.where,
                       "the pre-tokenizer " + quoted(part.type) + " behind one that respells the text");
      if (part.type == "ByteLevel") {
        if (auto done = byte_level(part, i, words); !done) return done;
      } else if (part.type == "Metaspace") {
        if (i > 0) return unknown(part.where, "Metaspace behind another part");
        if (auto done = metaspace(part, words); !done) return done;
      } else if (part.type == "Digits") {
        if (words || numbers != PreTokenizer::Numbers::stay)
          return unknown(part.where, "Digits behind another part");
        numbers = flag_or(object, "individual_digits", false) ? PreTokenizer::Numbers::each
                                                              : PreTokenizer::Numbers::runs;
      } else if (part.type == "Split") {
        const std::string_view regex = regex_pattern(object);
        const auto* found = std::find_if(kKnownRegexes.begin(), kKnownRegexes.end(),
                                         [&](const KnownRegex& known) { return known.regex == regex; });
        if (found == kKnownRegexes.end() || text_or(object, "behavior", "") != "Isolated" ||
            flag_or(object, "invert", false)) {
          return unknown(part.where, "Split by the expression " + quoted(regex));
        }
        if (words) return unknown(part.where, "a second Split");
        words = found->rules;
      } else {
        return unknown(part.where, "the pre-tokenizer " + quoted(part.type));
      }
    }
    parts_.pretokenizer = words.value_or(PreTokenizer::text);
    parts_.pretokenizer.numbers_first = numbers;
    return {};
  }

  // Only what stands in front of the text matters: tokens are counted, not offsets.
  Result<void> postprocessor(const json::object& root) {
    auto parts = components(root, "post_processor", "processors");
    if (!parts) return parts.error();
    for (const Component& part : *parts) {
      if (part.type == "ByteLevel") continue;
      if (part.type != "TemplateProcessing")
        return unknown(part.where, "the post-processor " + quoted(part.type));
      const json::value* single = member(*part.object, "single");
      if (single == nullptr || !single->is_array())
        return wrong(part.where, "has no template for a single text");
      bool text_seen = false;
      for (const json::value& piece : single->get_array()) {
        const json::object* object = piece.if_object();
        const json::value* special = object == nullptr ? nullptr : member(*object, "SpecialToken");
        const json::value* text = object == nullptr ? nullptr : member(*object, "Sequence");
        if (special == nullptr && text == nullptr)
          return wrong(part.where, "has a part that is neither text nor token");
        if (text != nullptr) {
          text_seen = true;
          continue;
        }
        if (text_seen || !front_token_.empty())
          return unknown(part.where, "a template with more than one token in front of the text");
        if (special->is_object()) front_token_ = text_or(special->get_object(), "id", "");
        if (front_token_.empty()) return wrong(part.where, "names no token");
      }
    }
    return {};
  }

  Result<void> decoder(const json::object& root) {
    auto parts = components(root, "decoder", "decoders");
    if (!parts) return parts.error();
    bool unmarks = false;  // the decoder turns U+2581 into a space
    for (const Component& part : *parts) {
      const json::object& object = *part.object;
      if (part.type == "ByteLevel") {
        if (!byte_level_) return unknown(part.where, "ByteLevel without a pre-tokenizer of the same name");
      } else if (part.type == "ByteFallback" || part.type == "Fuse") {
        continue;  // what Vocabulary does with tokens of type byte
      } else if (part.type == "Replace") {
        if (string_pattern(object) != kSpaceMark || text_or(object, "content", "") != " ")
          return unknown(part.where, "Replace of something other than U+2581 by a space");
        unmarks = true;
      } else if (part.type == "Metaspace") {
        const bool prefix = flag_or(object, "add_prefix_space", true);
        parts_.strip_first_space = text_or(object, "prepend_scheme", prefix ? "always" : "never") != "never";
        unmarks = true;
      } else if (part.type == "Strip") {
        const json::value* start = member(object, "start");
        const json::value* stop = member(object, "stop");
        const bool one = start != nullptr && start->is_int64() && start->get_int64() == 1;
        const bool none = stop == nullptr || (stop->is_int64() && stop->get_int64() == 0);
        if (text_or(object, "content", "") != " " || !one || !none)
          return unknown(part.where, "Strip of something other than one space in front");
        parts_.strip_first_space = true;
      } else {
        return unknown(part.where, "the decoder " + quoted(part.type));
      }
    }
    if (unmarks && byte_level_) return unknown(at("decoder"), "a decoder of U+2581 with byte-level text");
    if (!unmarks && !byte_level_)
      return unknown(at("decoder"), "a text vocabulary whose decoder keeps U+2581");
    return {};
  }

  Result<void> read_model(const json::object& model) {
    std::string_view type = text_or(model, "type", "");
    if (type.empty() && member(model, "merges") != nullptr)
      type = "BPE";  // files of before the member existed
    if (type == "BPE") return read_bpe(model);
    if (type == "Unigram") return read_unigram(model);
    return unknown(at("model"), "the type " + quoted(type));
  }

  // Ids are checked before there is room made for them.
  Result<std::int32_t> token_id(const json::value& value, const std::string& where) const {
    if (!value.is_int64() || value.get_int64() < 0 || value.get_int64() >= id_bound_)
      return wrong(where, "is no token id");
    return static_cast<std::int32_t>(value.get_int64());
  }

  // The token `text` has the id `id`. Room is made for ids that come out of order.
  Result<void> place(std::int32_t id, std::string_view text, const std::string& where) {
    const auto index = static_cast<std::size_t>(id);
    if (tokens_.size() <= index) {
      tokens_.resize(index + 1);
      types_.resize(index + 1, static_cast<std::int64_t>(TokenType::unused));
    }
    if (!tokens_[index].empty() && tokens_[index] != text)
      return wrong(where, "has two tokens with the id " + std::to_string(id));
    if (text.empty()) return wrong(where, "has an empty token with the id " + std::to_string(id));
    tokens_[index] = text;
    return {};
  }

  Result<void> read_bpe(const json::object& model) {
    const std::string where = at("model");
    parts_.model = byte_level_ ? TokenModel::byte_bpe : TokenModel::text_bpe;
    for (const char* name : {"continuing_subword_prefix", "end_of_word_suffix"}) {
      if (!text_or(model, name, "").empty()) return unknown(where, name);
    }
    const json::value* dropout = member(model, "dropout");
    if (dropout != nullptr && !(dropout->is_number() && dropout->to_number<double>() == 0))
      return unknown(where, "dropout");
    parts_.whole_tokens = flag_or(model, "ignore_merges", false);
    parts_.byte_fallback = flag_or(model, "byte_fallback", false);
    parts_.fuse_unknown = flag_or(model, "fuse_unk", false);
    unknown_token_ = text_or(model, "unk_token", "");

    const json::value* vocab = member(model, "vocab");
    if (vocab == nullptr || !vocab->is_object()) return wrong(where, "has no vocab");
    if (vocab->get_object().size() > Vocabulary::kMaxTokens)
      return fail(Errc::too_long, where + ": too many tokens");
    for (const auto& [text, value] : vocab->get_object()) {
      auto id = token_id(value, where + ": vocab " + quoted(text));
      if (!id) return id.error();
      if (auto done = place(*id, text, where + ": vocab"); !done) return done;
      set_normal(*id);
    }
    const json::value* merges = member(model, "merges");
    if (merges == nullptr || !merges->is_array()) return wrong(where, "has no merges");
    merges_.reserve(std::min(merges->get_array().size(), Vocabulary::kMaxTokens));
    for (const json::value& merge : merges->get_array()) {
      const auto bad = [&] {
        return wrong(where, "merge " + std::to_string(merges_.size()) + " is not two tokens");
      };
      if (merge.is_string()) {
        const std::string_view text = view(merge.get_string());
        const std::size_t gap = text.find(' ');
        if (gap == std::string_view::npos) return bad();
        merges_.emplace_back(text.substr(0, gap), text.substr(gap + 1));
      } else if (merge.is_array() && merge.get_array().size() == 2 && merge.get_array()[0].is_string() &&
                 merge.get_array()[1].is_string()) {
        merges_.emplace_back(view(merge.get_array()[0].get_string()),
                             view(merge.get_array()[1].get_string()));
      } else {
        return bad();
      }
    }
    return {};
  }

  Result<void> read_unigram(const json::object& model) {
    const std::string where = at("model");
    if (byte_level_) return unknown(where, "Unigram over byte-level text");
    parts_.model = TokenModel::unigram;
    parts_.byte_fallback = flag_or(model, "byte_fallback", false);
    const json::value* vocab = member(model, "vocab");
    if (vocab == nullptr || !vocab->is_array()) return wrong(where, "has no vocab");
    if (vocab->get_array().size() > Vocabulary::kMaxTokens)
      return fail(Errc::too_long, where + ": too many tokens");
    for (const json::value& entry : vocab->get_array()) {
      const json::array* pair = entry.if_array();
      const auto id = static_cast<std::int32_t>(scores_.size());
      if (pair == nullptr || pair->size() != 2 || !(*pair)[0].is_string() || !(*pair)[1].is_number())
        return wrong(where, "token " + std::to_string(id) + " is no text with a score");
      if (auto done = place(id, view((*pair)[0].get_string()), where); !done) return done;
      set_normal(id);
      scores_.push_back((*pair)[1].to_number<double>());
    }
    if (const json::value* unk = member(model, "unk_id")) {
      auto id = token_id(*unk, where + ": unk_id");
      if (!id) return id.error();
      parts_.unknown = *id;
    }
    return {};
  }

  void set_normal(std::int32_t id) {
    const std::string& text = tokens_[static_cast<std::size_t>(id)];
    const bool byte = !byte_level_ && parts_.byte_fallback && byte_of_name(text) >= 0;
    types_[static_cast<std::size_t>(id)] =
        static_cast<std::int64_t>(byte ? TokenType::byte : TokenType::normal);
  }

  Result<void> added_tokens(const json::object& root) {
    const std::string where = at("added_tokens");
    const json::value* added = member(root, "added_tokens");
    if (added == nullptr) return {};
    if (!added->is_array()) return wrong(where, "is no list");
    for (const json::value& entry : added->get_array()) {
      const json::object* object = entry.if_object();
      const json::value* number = object == nullptr ? nullptr : member(*object, "id");
      const std::string_view text = object == nullptr ? "" : text_or(*object, "content", "");
      if (number == nullptr || text.empty()) return wrong(where, "has an entry without id or content");
      auto id = token_id(*number, where + ": " + quoted(text));
      if (!id) return id.error();
      if (auto done = place(*id, text, where); !done) return done;
      if (flag_or(*object, "single_word", false)) return unknown(where, "single_word of " + quoted(text));
      const bool special = flag_or(*object, "special", false);
      types_[static_cast<std::size_t>(*id)] =
          static_cast<std::int64_t>(special ? TokenType::control : TokenType::user_defined);
      LiteralRule rule;
      rule.id = *id;
      rule.takes_left = flag_or(*object, "lstrip", false);
      rule.takes_right = flag_or(*object, "rstrip", false);
      rule.normalized = flag_or(*object, "normalized", !special);
      rules_.push_back(rule);
    }
    return {};
  }

  std::optional<std::int32_t> find(std::string_view text) const {
    const auto found = std::find(tokens_.begin(), tokens_.end(), text);
    if (text.empty() || found == tokens_.end()) return std::nullopt;
    return static_cast<std::int32_t>(found - tokens_.begin());
  }

  // The token spelt `text`, if any is asked for.
  Result<void> settle(std::string_view text, std::string_view what, std::optional<std::int32_t>& id) const {
    if (id || text.empty()) return {};
    id = find(text);
    if (!id)
      return wrong(label_, "has no token " + quoted(text) + ", which should be its " + std::string(what));
    return {};
  }

  Result<void> settle_ids() {
    if (tokens_.empty()) return wrong(label_, "has no tokens");
    parts_.bos = ids_.bos;
    if (!ids_.eos.empty()) parts_.eos = ids_.eos.front();
    const std::string_view bos = ids_.bos_token.empty() ? front_token_ : std::string_view(ids_.bos_token);
    if (auto done = settle(bos, "BOS", parts_.bos); !done) return done;
    if (auto done = settle(ids_.eos_token, "EOS", parts_.eos); !done) return done;
    if (auto done = settle(unknown_token_, "unknown token", parts_.unknown); !done) return done;
    parts_.add_bos = ids_.add_bos.value_or(!front_token_.empty());
    if (parts_.add_bos && !parts_.bos) return wrong(label_, "asks for BOS and names none");

    // Ids without a token: spelt as converters to GGUF spell them, so that both formats have one vocabulary
    // hash.
    if (ids_.vocab_rows > static_cast<std::int32_t>(Vocabulary::kMaxTokens))
      return fail(Errc::too_long, label_ + ": too many tokens");
    const std::size_t rows = std::max(tokens_.size(), static_cast<std::size_t>(std::max(ids_.vocab_rows, 0)));
    tokens_.resize(rows);
    types_.resize(rows, static_cast<std::int64_t>(TokenType::unused));
    for (std::size_t id = 0; id < rows; ++id) {
      if (tokens_[id].empty()) tokens_[id] = "[PAD" + std::to_string(id) + "]";
    }
    if (parts_.model == TokenModel::unigram) scores_.resize(rows, 0);
    return {};
  }

  std::string label_;
  const HuggingFaceIds& ids_;
  TokenizerParts parts_;
  std::vector<std::string> tokens_;
  std::vector<std::int64_t> types_;
  std::vector<MergeText> merges_;  // views into the parsed JSON
  std::vector<double> scores_;
  std::vector<LiteralRule> rules_;
  std::int64_t id_bound_ = 0;  // ids are below it
  bool byte_level_ = false;
  std::string_view front_token_, unknown_token_;  // views into the parsed JSON
};

}  // namespace

Result<std::shared_ptr<const Tokenizer>> Tokenizer::parse_tokenizer_json(std::string_view text,
                                                                         const std::string& label,
                                                                         const HuggingFaceIds& ids) {
  if (text.size() > kMaxJsonBytes) {
    return fail(Errc::too_long, label + " has " + std::to_string(text.size()) + " bytes; at most " +
                                    std::to_string(kMaxJsonBytes) + " are read");
  }
  json::monotonic_resource memory;  // millions of small values, freed at once
  const auto root = parse_json(text, label, kMaxDepth, &memory);
  if (!root) return root.error();
  return Reader(label, ids).run(*root);
}

Result<std::shared_ptr<const Tokenizer>> Tokenizer::from_tokenizer_json(const std::string& path,
                                                                        const HuggingFaceIds& ids) {
  const Result<std::string> text = read_text(path, kMaxJsonBytes, Errc::too_long);
  if (!text) return text.error();
  return parse_tokenizer_json(*text, path, ids);
}

}  // namespace helios::model
