#include "model/tokenizer.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <deque>
#include <functional>
#include <utility>

#include "model/unicode_tables.hpp"

namespace helios::model {
namespace {

// Words repeat: in a text of this many bytes or more, pieces met before are looked up in a small table.
constexpr std::size_t kLongText = 2048;
constexpr std::size_t kKnownPieces = 2048;
constexpr std::size_t kKnownPieceBytes = 24;

// All cuts of all tokens in two, in bytes to compare: real vocabularies need less than a hundredth.
constexpr std::uint64_t kMaxScoredWork = std::uint64_t{1} << 31;

// Control tokens that end an answer in the models we know, whatever the file calls its EOS.
constexpr std::array<std::string_view, 7> kEndNames = {
    "<|im_end|>", "<|eot_id|>", "<|endoftext|>", "<|end_of_text|>", "<|end|>", "<|eom_id|>", "</s>"};

Error damaged(const std::string& what) {
  return fail(Errc::bad_file, "tokenizer: " + what + ": the file is damaged");
}

bool is_one_code_point(std::string_view text) {
  return !text.empty() && decode_code_point(text).length == text.size();
}

// Bytes of white space at the end of `text`.
std::size_t trailing_space(std::string_view text) {
  std::size_t end = text.size();
  while (end > 0) {
    std::size_t begin = end - 1;
    while (begin > 0 && (static_cast<unsigned char>(text[begin]) & 0xC0) == 0x80) --begin;
    const CodePoint point = decode_code_point(text.substr(begin, end - begin));
    if (!point.valid || point.length != end - begin || !is_space(point.value)) break;
    end = begin;
  }
  return text.size() - end;
}

// … at its beginning.
std::size_t leading_space(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    const CodePoint point = decode_code_point(text.substr(at));
    if (!point.valid || !is_space(point.value)) break;
    at += point.length;
  }
  return at;
}

}  // namespace

// Buffers that one encode() reuses for all its pieces.
struct Tokenizer::Scratch {
  struct Known {  // a piece met before in this text, and where its ids are in the output
    std::string_view piece;
    std::size_t begin = 0;
    std::size_t count = 0;
  };
  std::vector<Known> known;       // by hash, the last one wins; empty for a short text, which repeats little
  std::deque<std::string> texts;  // rewritten parts of the input, which pieces are views of
  std::string spelling;
  std::vector<std::int32_t> symbols;
  MergeTable::Scratch merging;
};

Result<std::shared_ptr<const Tokenizer>> Tokenizer::create(const TokenizerParts& parts) {
  auto vocabulary =
      Vocabulary::create(parts.tokens, parts.token_types,
                         parts.model == TokenModel::byte_bpe ? Spelling::byte_level : Spelling::marked);
  if (!vocabulary) return vocabulary.error();
  std::shared_ptr<Tokenizer> made(new Tokenizer());
  made->vocabulary_ = std::move(*vocabulary);
  made->model_ = parts.model;
  made->normalizer_ = parts.normalizer;
  made->spaces_ = parts.spaces;
  made->pretokenizer_ = parts.pretokenizer;
  made->whole_tokens_ = parts.whole_tokens;
  made->byte_fallback_ = parts.byte_fallback;
  made->fuse_unknown_ = parts.fuse_unknown;
  made->strip_first_space_ = parts.strip_first_space;
  made->add_bos_ = parts.add_bos;
  const bool scored = parts.model == TokenModel::scored_bpe || parts.model == TokenModel::unigram;
  if (scored && parts.scores.size() != parts.tokens.size()) {
    return damaged(std::to_string(parts.tokens.size()) + " tokens, but " +
                   std::to_string(parts.scores.size()) + " scores");
  }
  Result<void> filled;
  switch (parts.model) {
    case TokenModel::byte_bpe:
    case TokenModel::text_bpe:
      filled = made->add_merges(parts.merges);
      break;
    case TokenModel::scored_bpe:
      filled = made->add_scored_merges(parts.scores);
      break;
    case TokenModel::unigram:
      filled = made->add_unigram(parts.scores);
      break;
  }
  if (!filled) return filled.error();
  made->add_literals(parts.literal_rules);
  if (auto set = made->set_ids(parts); !set) return set.error();
  return std::shared_ptr<const Tokenizer>(std::move(made));
}

Result<void> Tokenizer::set_ids(const TokenizerParts& parts) {
  for (const auto& id : {parts.unknown, parts.bos, parts.eos, parts.eot}) {
    if (id && !vocabulary_.contains(*id))
      return damaged("the special token id " + std::to_string(*id) + " is outside the vocabulary");
  }
  unknown_ = parts.unknown;
  bos_ = parts.bos;
  eos_ = parts.eos;
  end_ids_.assign(parts.more_ends.begin(), parts.more_ends.end());
  for (const std::int32_t id : end_ids_) {
    if (!vocabulary_.contains(id))
      return damaged("the end token id " + std::to_string(id) + " is outside the vocabulary");
  }
  if (parts.eos) end_ids_.push_back(*parts.eos);
  if (parts.eot) end_ids_.push_back(*parts.eot);
  for (const std::string_view name : kEndNames) {
    const auto id = vocabulary_.find(name);
    if (id && is_special(*id)) end_ids_.push_back(*id);
  }
  std::sort(end_ids_.begin(), end_ids_.end());
  end_ids_.erase(std::unique(end_ids_.begin(), end_ids_.end()), end_ids_.end());
  return {};
}

Result<void> Tokenizer::add_merges(std::span<const MergeText> merges) {
  if (merges.size() > Vocabulary::kMaxTokens)
    return fail(Errc::bad_file, "tokenizer: there are too many merges");
  merges_.reset(merges.size());
  std::string joined;
  for (std::size_t rank = 0; rank < merges.size(); ++rank) {
    const MergeText& merge = merges[rank];
    const auto left = vocabulary_.find(merge.left);
    const auto right = vocabulary_.find(merge.right);
    joined.assign(merge.left).append(merge.right);
    const auto result = vocabulary_.find(joined);
    if (!left || !right || !result)
      return damaged("merge " + std::to_string(rank) + " names no token of the vocabulary");
    if (!merges_.add(*left, *right, static_cast<std::int32_t>(rank), *result))
      return damaged("merge " + std::to_string(rank) + " appears twice");
  }
  return {};
}

Result<void> Tokenizer::add_scored_merges(std::span<const double> scores) {
  std::uint64_t work = 0;
  std::size_t cuts = 0;
  std::vector<double>
      order;  // distinct, best first: equal scores have one rank, so the leftmost pair goes first
  for (std::int32_t id = 0; id < vocab_size(); ++id) {
    const double score = scores[static_cast<std::size_t>(id)];
    if (std::isnan(score)) return damaged("the score of token " + std::to_string(id) + " is not a number");
    if (vocabulary_.type(id) != TokenType::normal) continue;
    const std::size_t size = vocabulary_.spelling(id).size();
    work += std::uint64_t{size} * size;
    cuts += size - 1;
    order.push_back(score);
  }
  if (work > kMaxScoredWork) return damaged("its tokens are too long");
  std::sort(order.begin(), order.end(), std::greater<>());
  order.erase(std::unique(order.begin(), order.end()), order.end());
  const auto rank_of = [&](double score) {
    return static_cast<std::int32_t>(std::lower_bound(order.begin(), order.end(), score, std::greater<>()) -
                                     order.begin());
  };

  // Calls `cut(id, left, right)` for every way to cut a normal token in two between code points.
  const auto each_cut = [this](const auto& cut) {
    for (std::int32_t id = 0; id < vocab_size(); ++id) {
      if (vocabulary_.type(id) != TokenType::normal) continue;
      const std::string_view spelling = vocabulary_.spelling(id);
      for (std::size_t at = decode_code_point(spelling).length; at < spelling.size();
           at += decode_code_point(spelling.substr(at)).length) {
        cut(id, spelling.substr(0, at), spelling.substr(at));
      }
    }
  };
  std::unordered_map<std::string_view, std::int32_t>
      lone;  // parts of tokens that are no tokens: views of spellings
  each_cut([&](std::int32_t, std::string_view left, std::string_view right) {
    for (const std::string_view part : {left, right}) {
      if (is_one_code_point(part) && normal_token(part) < 0)
        lone.emplace(part, vocab_size() + static_cast<std::int32_t>(lone.size()));
    }
  });
  parts_.resize(lone.size());
  for (const auto& [part, symbol] : lone) parts_[static_cast<std::size_t>(symbol - vocab_size())] = part;
  for (std::size_t i = 0; i < parts_.size(); ++i)
    part_symbols_.emplace(parts_[i], vocab_size() + static_cast<std::int32_t>(i));

  merges_.reset(cuts);
  const auto symbol_of = [this](std::string_view text) {
    const std::int32_t id = normal_token(text);
    if (id >= 0) return id;
    const auto found = part_symbols_.find(text);
    return found == part_symbols_.end() ? -1 : found->second;
  };
  each_cut([&](std::int32_t id, std::string_view left, std::string_view right) {
    const std::int32_t left_symbol = symbol_of(left);
    const std::int32_t right_symbol = symbol_of(right);
    if (left_symbol < 0 || right_symbol < 0) return;
    merges_.add(left_symbol, right_symbol, rank_of(scores[static_cast<std::size_t>(id)]), id);
  });
  return {};
}

Result<void> Tokenizer::add_unigram(std::span<const double> scores) {
  for (std::int32_t id = 0; id < vocab_size(); ++id) {
    const double score = scores[static_cast<std::size_t>(id)];
    if (!std::isfinite(score))
      return damaged("the score of token " + std::to_string(id) + " is not a finite number");
    if (vocabulary_.type(id) == TokenType::normal) unigram_.add(vocabulary_.spelling(id), id, score);
  }
  return {};
}

void Tokenizer::add_literals(std::span<const LiteralRule> rules) {
  for (const LiteralRule& rule : rules) literal_rules_[rule.id] = rule;
  for (std::int32_t id = 0; id < vocab_size(); ++id) {
    if (!is_special(id) && vocabulary_.type(id) != TokenType::user_defined) continue;
    const auto rule = literal_rules_.find(id);
    if (rule == literal_rules_.end() || !rule->second.normalized) {
      literals_.add(vocabulary_.spelling(id), id);
      continue;
    }
    const std::string text = normalizer_.apply(vocabulary_.spelling(id));
    if (!text.empty()) normalized_literals_.add(text, id);
  }
}

Tokenizer::Literal Tokenizer::next_literal(const ByteTrie& trie, std::string_view text, std::size_t from,
                                           bool parse_special) const {
  if (trie.empty()) return {};
  for (std::size_t at = from; at < text.size(); ++at) {
    Literal found;
    trie.prefixes(text.substr(at), [&](std::int32_t id, std::size_t length) {
      if (parse_special || !is_special(id)) found = {id, at, at + length};
    });
    if (found.id < 0) continue;
    if (const auto rule = literal_rules_.find(found.id); rule != literal_rules_.end()) {
      if (rule->second.takes_left) found.begin -= trailing_space(text.substr(from, found.begin - from));
      if (rule->second.takes_right) found.end += leading_space(text.substr(found.end));
    }
    return found;
  }
  return {};
}

std::vector<std::int32_t> Tokenizer::encode(std::string_view text, bool parse_special) const {
  std::vector<std::int32_t> out;
  out.reserve(text.size() / 3 + 8);
  Scratch scratch;
  if (text.size() >= kLongText) scratch.known.resize(kKnownPieces);
  // Cuts `part` at the literal tokens of `trie`; `rest(part, offset)` gets what is between them.
  const auto cut = [&](const ByteTrie& trie, std::string_view part, const auto& rest) {
    std::size_t begin = 0;
    while (true) {
      const Literal literal = next_literal(trie, part, begin, parse_special);
      const std::size_t end = literal.id < 0 ? part.size() : literal.begin;
      if (end > begin) rest(part.substr(begin, end - begin), begin);
      if (literal.id < 0) return;
      out.push_back(literal.id);
      begin = literal.end;
    }
  };
  cut(literals_, text, [&](std::string_view part, std::size_t offset) {
    if (!normalizer_.empty()) part = scratch.texts.emplace_back(normalizer_.apply(part));
    cut(normalized_literals_, part, [&](std::string_view inner, std::size_t inner_offset) {
      encode_text(inner, offset == 0 && inner_offset == 0, scratch, out);
    });
  });
  return out;
}

void Tokenizer::encode_text(std::string_view text, bool first, Scratch& scratch,
                            std::vector<std::int32_t>& out) const {
  const std::string_view space = spaces_.marks ? kSpaceMark : std::string_view(" ");
  if (spaces_.marks && text.find(' ') != std::string_view::npos) {
    Normalizer marks;
    marks.add_replace(" ", std::string(kSpaceMark));
    text = scratch.texts.emplace_back(marks.apply(text));
  }
  const bool wanted =
      spaces_.prefix == SpaceRule::Prefix::always || (spaces_.prefix == SpaceRule::Prefix::first && first);
  if (wanted && !text.starts_with(space)) {
    std::string prefixed(space);
    prefixed += text;
    text = scratch.texts.emplace_back(std::move(prefixed));
  }
  PieceReader pieces(pretokenizer_, text);
  while (const auto piece = pieces.next()) encode_piece(*piece, scratch, out);
}

void Tokenizer::encode_piece(std::string_view piece, Scratch& scratch, std::vector<std::int32_t>& out) const {
  Scratch::Known* known = nullptr;
  if (!scratch.known.empty() && piece.size() <= kKnownPieceBytes) {
    known = &scratch.known[std::hash<std::string_view>()(piece) & (kKnownPieces - 1)];
    if (known->piece == piece) {
      for (std::size_t i = 0; i < known->count; ++i) out.push_back(std::int32_t{out[known->begin + i]});
      return;
    }
  }
  scratch.symbols.clear();
  switch (model_) {
    case TokenModel::byte_bpe:
      append_bytes(piece, scratch);
      break;
    case TokenModel::text_bpe:
    case TokenModel::scored_bpe:
      append_merged(piece, scratch);
      break;
    case TokenModel::unigram:
      append_cut(piece, scratch);
      break;
  }
  if (known != nullptr) *known = {piece, out.size(), scratch.symbols.size()};
  out.insert(out.end(), scratch.symbols.begin(), scratch.symbols.end());
}

void Tokenizer::append_bytes(std::string_view piece, Scratch& scratch) const {
  if (whole_tokens_ && piece.size() <= Vocabulary::kMaxTokenBytes) {
    scratch.spelling.clear();
    for (const char c : piece) append_printable(scratch.spelling, static_cast<unsigned char>(c));
    const std::int32_t whole = normal_token(scratch.spelling);
    if (whole >= 0) return scratch.symbols.push_back(whole);
  }
  for (const char c : piece) {
    const std::int32_t id = vocabulary_.byte_token(static_cast<unsigned char>(c));
    if (id >= 0) scratch.symbols.push_back(id);
  }
  merges_.merge(scratch.symbols, scratch.merging);
}

void Tokenizer::append_merged(std::string_view piece, Scratch& scratch) const {
  if (whole_tokens_) {
    const std::int32_t whole = normal_token(piece);
    if (whole >= 0) return scratch.symbols.push_back(whole);
  }
  std::vector<std::int32_t>& symbols = scratch.symbols;
  for (std::string_view rest = piece; !rest.empty();) {
    const std::string_view point = rest.substr(0, decode_code_point(rest).length);
    rest.remove_prefix(point.size());
    const std::int32_t id = normal_token(point);
    if (id >= 0) {
      symbols.push_back(id);
    } else if (const auto part = part_symbols_.find(point); part != part_symbols_.end()) {
      symbols.push_back(part->second);
    } else {
      append_unknown(point, symbols);
    }
  }
  merges_.merge(symbols, scratch.merging);
  if (parts_.empty()) return;
  const std::vector<std::int32_t> merged(symbols);
  symbols.clear();
  for (const std::int32_t symbol : merged) {
    if (symbol < vocab_size()) {
      symbols.push_back(symbol);
    } else {
      append_unknown(parts_[static_cast<std::size_t>(symbol - vocab_size())], symbols);
    }
  }
}

void Tokenizer::append_cut(std::string_view piece, Scratch& scratch) const {
  for (const Unigram::Part& part : unigram_.cut(piece)) {
    if (part.id >= 0) {
      scratch.symbols.push_back(part.id);
      continue;
    }
    std::string_view rest = piece.substr(part.begin, part.end - part.begin);
    while (!rest.empty()) {
      const std::size_t length = fuse_unknown_ ? rest.size() : decode_code_point(rest).length;
      append_unknown(rest.substr(0, length), scratch.symbols);
      rest.remove_prefix(length);
    }
  }
}

void Tokenizer::append_unknown(std::string_view text, std::vector<std::int32_t>& out) const {
  const auto token_of = [this](char c) { return vocabulary_.byte_token(static_cast<unsigned char>(c)); };
  if (byte_fallback_ && std::all_of(text.begin(), text.end(), [&](char c) { return token_of(c) >= 0; })) {
    for (const char c : text) out.push_back(token_of(c));
  } else if (unknown_ && !(fuse_unknown_ && !out.empty() && out.back() == *unknown_)) {
    out.push_back(*unknown_);
  }
}

std::int32_t Tokenizer::normal_token(std::string_view spelling) const {
  const auto id = vocabulary_.find(spelling);
  return id && vocabulary_.type(*id) == TokenType::normal ? *id : -1;
}

std::string Tokenizer::decode(std::span<const std::int32_t> ids, bool with_special) const {
  std::string out;
  for (const std::int32_t id : ids) {
    if (with_special || !is_special(id)) out += bytes_of(id);
  }
  if (strip_first_space_ && out.starts_with(' ')) out.erase(0, 1);
  return out;
}

std::string Tokenizer::bos_text() const {
  return bos_ ? vocabulary_.spelling(*bos_) : std::string();
}

std::string Tokenizer::eos_text() const {
  return eos_ ? vocabulary_.spelling(*eos_) : std::string();
}

bool Tokenizer::is_end(std::int32_t id) const noexcept {
  return std::binary_search(end_ids_.begin(), end_ids_.end(), id);
}

}  // namespace helios::model
