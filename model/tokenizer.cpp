#include "model/tokenizer.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <functional>
#include <queue>
#include <utility>

namespace helios::model {
namespace {

// Longer pieces (a line of one letter, a wall of emoji) go through a heap: n log n instead of n².
constexpr std::size_t kShortPiece = 24;

// Words repeat: in a text of this many bytes or more, pieces met before are looked up in a small table.
constexpr std::size_t kLongText = 2048;
constexpr std::size_t kKnownPieces = 2048;

// Control tokens that end an answer in the models we know, whatever the file calls its EOS.
constexpr std::array<std::string_view, 7> kEndNames = {
    "<|im_end|>", "<|eot_id|>", "<|endoftext|>", "<|end_of_text|>", "<|end|>", "<|eom_id|>", "</s>"};

std::uint64_t pair_of(std::int32_t left, std::int32_t right) {
  return static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32 |
         static_cast<std::uint32_t>(right);
}

std::size_t slot_of(std::uint64_t pair) {
  return static_cast<std::size_t>((pair * 0x9E3779B97F4A7C15) >> 20);
}

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

}  // namespace

// Buffers that one encode() reuses for all its pieces.
struct Tokenizer::Scratch {
  struct Node {  // a symbol of a long piece, linked to its living neighbours
    std::int32_t id;
    std::int32_t previous;
    std::int32_t next;
  };
  struct Candidate {
    std::int32_t rank;
    std::int32_t left;   // node
    std::int32_t right;  // node
    std::uint64_t pair;  // stale when the nodes no longer hold these ids
    bool operator>(const Candidate& other) const {
      return rank != other.rank ? rank > other.rank : left > other.left;
    }
  };
  struct Known {  // a piece met before in this text, and where its ids are in the output
    std::string_view piece;
    std::size_t begin = 0;
    std::size_t count = 0;
  };
  std::vector<Known> known;  // by hash, the last one wins; empty for a short text, which repeats little
  std::string spelling;
  std::vector<std::int32_t> symbols;
  std::vector<Node> nodes;
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> candidates;
};

Result<std::shared_ptr<const Tokenizer>> Tokenizer::from_gguf(const GgufFile& file) {
  auto model = file.str("tokenizer.ggml.model");
  if (!model) return model.error();
  if (*model != "gpt2") {
    return fail(Errc::unsupported,
                "tokenizer.ggml.model is '" + model->substr(0, 80) +
                    "': only byte-level BPE (gpt2) is known; use a model with such a tokenizer");
  }
  TokenizerParts parts;
  auto pre = file.str("tokenizer.ggml.pre");
  if (!pre) return pre.error();
  auto pretokenizer = pretokenizer_by_name(*pre);
  if (!pretokenizer) return pretokenizer.error();
  parts.pretokenizer = pretokenizer->rules;
  parts.whole_tokens = pretokenizer->whole_tokens;
  auto tokens = file.strings("tokenizer.ggml.tokens");
  if (!tokens) return tokens.error();
  parts.tokens = *tokens;
  if (file.has("tokenizer.ggml.token_type")) {
    auto types = file.integers("tokenizer.ggml.token_type");
    if (!types) return types.error();
    parts.token_types = *types;
  }
  auto merges = file.strings("tokenizer.ggml.merges");
  if (!merges) return merges.error();
  parts.merges = *merges;
  const std::pair<std::string_view, std::optional<std::int32_t>*> ids[] = {
      {"tokenizer.ggml.bos_token_id", &parts.bos},
      {"tokenizer.ggml.eos_token_id", &parts.eos},
      {"tokenizer.ggml.eot_token_id", &parts.eot},
  };
  for (const auto& [key, out] : ids) {
    auto id = optional_id(file, key);
    if (!id) return id.error();
    *out = *id;
  }
  auto add_bos = file.boolean_or("tokenizer.ggml.add_bos_token", pretokenizer->add_bos);
  if (!add_bos) return add_bos.error();
  parts.add_bos = *add_bos;
  auto add_prefix = file.boolean_or("tokenizer.ggml.add_space_prefix", false);
  if (!add_prefix) return add_prefix.error();
  if (*add_prefix) {
    return fail(Errc::unsupported,
                "tokenizer.ggml.add_space_prefix is set, which byte-level BPE here does not do: its "
                "ids would be wrong, so the model is refused");
  }
  return create(parts);
}

Result<std::shared_ptr<const Tokenizer>> Tokenizer::create(const TokenizerParts& parts) {
  auto vocabulary = Vocabulary::create(parts.tokens, parts.token_types);
  if (!vocabulary) return vocabulary.error();
  std::shared_ptr<Tokenizer> made(new Tokenizer());
  made->vocabulary_ = std::move(*vocabulary);
  made->pretokenizer_ = parts.pretokenizer;
  made->whole_tokens_ = parts.whole_tokens;
  made->add_bos_ = parts.add_bos;
  for (const auto& id : {parts.bos, parts.eos, parts.eot}) {
    if (id && !made->vocabulary_.contains(*id)) {
      return fail(Errc::bad_file, "tokenizer: the special token id " + std::to_string(*id) +
                                      " is outside the vocabulary: the file is damaged");
    }
  }
  made->bos_ = parts.bos;
  made->eos_ = parts.eos;
  if (auto added = made->add_merges(parts.merges); !added) return added.error();
  made->trie_.push_back({});
  for (std::int32_t id = 0; id < made->vocab_size(); ++id) {
    const TokenType type = made->vocabulary_.type(id);
    if (type == TokenType::control || type == TokenType::user_defined) {
      made->add_literal(made->vocabulary_.spelling(id), id);
    }
  }
  if (parts.eos) made->end_ids_.push_back(*parts.eos);
  if (parts.eot) made->end_ids_.push_back(*parts.eot);
  for (const std::string_view name : kEndNames) {
    const auto id = made->vocabulary_.find(name);
    if (id && made->is_special(*id)) made->end_ids_.push_back(*id);
  }
  std::sort(made->end_ids_.begin(), made->end_ids_.end());
  made->end_ids_.erase(std::unique(made->end_ids_.begin(), made->end_ids_.end()), made->end_ids_.end());
  return std::shared_ptr<const Tokenizer>(std::move(made));
}

Result<void> Tokenizer::add_merges(std::span<const std::string> merges) {
  if (merges.size() > Vocabulary::kMaxTokens)
    return fail(Errc::bad_file, "tokenizer: there are too many merges");
  merges_.resize(std::bit_ceil(merges.size() * 2 + 1));
  const std::size_t mask = merges_.size() - 1;
  std::string joined;
  for (std::size_t rank = 0; rank < merges.size(); ++rank) {
    const std::string_view merge = merges[rank];
    const std::size_t gap = merge.find(' ');  // no token has a raw space: byte-level BPE spells it U+0120
    const auto bad = [&](const char* why) {
      return fail(Errc::bad_file,
                  "tokenizer: merge " + std::to_string(rank) + " " + why + ": the file is damaged");
    };
    if (gap == std::string_view::npos) return bad("is not two tokens");
    const auto left = vocabulary_.find(merge.substr(0, gap));
    const auto right = vocabulary_.find(merge.substr(gap + 1));
    joined.assign(merge.substr(0, gap)).append(merge.substr(gap + 1));
    const auto result = vocabulary_.find(joined);
    if (!left || !right || !result) return bad("names no token of the vocabulary");
    const std::uint64_t pair = pair_of(*left, *right);
    std::size_t slot = slot_of(pair) & mask;
    while (merges_[slot].pair != kNoPair && merges_[slot].pair != pair) slot = (slot + 1) & mask;
    if (merges_[slot].pair == pair) return bad("appears twice");
    merges_[slot] = {pair, static_cast<std::int32_t>(rank), *result};
  }
  return {};
}

const Tokenizer::Merge* Tokenizer::find_merge(std::int32_t left, std::int32_t right) const noexcept {
  const std::uint64_t pair = pair_of(left, right);
  const std::size_t mask = merges_.size() - 1;
  for (std::size_t slot = slot_of(pair) & mask;; slot = (slot + 1) & mask) {  // half of the slots are free
    const Merge& merge = merges_[slot];
    if (merge.pair == pair) return &merge;
    if (merge.pair == kNoPair) return nullptr;
  }
}

void Tokenizer::add_literal(std::string_view text, std::int32_t id) {
  std::size_t node = 0;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    std::int32_t child = trie_[node].child;
    while (child >= 0 && trie_[static_cast<std::size_t>(child)].byte != byte) {
      child = trie_[static_cast<std::size_t>(child)].sibling;
    }
    if (child < 0) {
      child = static_cast<std::int32_t>(trie_.size());
      trie_.push_back({byte, -1, -1, trie_[node].child});
      trie_[node].child = child;
    }
    node = static_cast<std::size_t>(child);
  }
  trie_[node].id = id;
}

std::int32_t Tokenizer::match_literal(std::string_view text, bool parse_special,
                                      std::size_t& length) const noexcept {
  std::int32_t found = -1;
  std::size_t node = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    std::int32_t child = trie_[node].child;
    while (child >= 0 && trie_[static_cast<std::size_t>(child)].byte != static_cast<unsigned char>(text[i])) {
      child = trie_[static_cast<std::size_t>(child)].sibling;
    }
    if (child < 0) break;
    node = static_cast<std::size_t>(child);
    const std::int32_t id = trie_[node].id;
    if (id >= 0 && (parse_special || vocabulary_.type(id) == TokenType::user_defined)) {
      found = id;
      length = i + 1;
    }
  }
  return found;
}

std::vector<std::int32_t> Tokenizer::encode(std::string_view text, bool parse_special) const {
  std::vector<std::int32_t> out;
  out.reserve(text.size() / 3 + 8);
  Scratch scratch;
  if (text.size() >= kLongText) scratch.known.resize(kKnownPieces);
  std::size_t begin = 0;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t length = 0;
    const std::int32_t id = match_literal(text.substr(at), parse_special, length);
    if (id < 0) {
      ++at;
      continue;
    }
    encode_text(text.substr(begin, at - begin), scratch, out);
    out.push_back(id);
    at += length;
    begin = at;
  }
  encode_text(text.substr(begin), scratch, out);
  return out;
}

void Tokenizer::encode_text(std::string_view text, Scratch& scratch, std::vector<std::int32_t>& out) const {
  PieceReader pieces(pretokenizer_, text);
  while (const auto piece = pieces.next()) encode_piece(*piece, scratch, out);
}

void Tokenizer::encode_piece(std::string_view piece, Scratch& scratch, std::vector<std::int32_t>& out) const {
  Scratch::Known* known = nullptr;
  if (!scratch.known.empty() && piece.size() <= kShortPiece) {
    known = &scratch.known[std::hash<std::string_view>()(piece) & (kKnownPieces - 1)];
    if (known->piece == piece) {
      for (std::size_t i = 0; i < known->count; ++i) out.push_back(std::int32_t{out[known->begin + i]});
      return;
    }
  }
  std::vector<std::int32_t>& symbols = scratch.symbols;
  symbols.clear();
  const std::int32_t whole = whole_tokens_ ? whole_token(piece, scratch.spelling) : -1;
  if (whole >= 0) {
    symbols.push_back(whole);
  } else {
    for (const char c : piece) {
      const std::int32_t id = vocabulary_.byte_token(static_cast<unsigned char>(c));
      if (id >= 0) symbols.push_back(id);
    }
  }
  if (symbols.size() <= kShortPiece) {
    merge_short(symbols);
  } else {
    merge_long(scratch);
  }
  if (known != nullptr) *known = {piece, out.size(), symbols.size()};
  out.insert(out.end(), symbols.begin(), symbols.end());
}

std::int32_t Tokenizer::whole_token(std::string_view piece, std::string& spelling) const {
  if (piece.size() > Vocabulary::kMaxTokenBytes) return -1;
  spelling.clear();
  for (const char c : piece) append_printable(spelling, static_cast<unsigned char>(c));
  const auto id = vocabulary_.find(spelling);
  return id && vocabulary_.type(*id) == TokenType::normal ? *id : -1;
}

// Applies the best merge, leftmost first, until none is left: the definition, fast for a word.
void Tokenizer::merge_short(std::vector<std::int32_t>& symbols) const {
  std::array<const Merge*, kShortPiece> merges{};  // of symbols i and i + 1
  std::size_t count = symbols.size();
  for (std::size_t i = 0; i + 1 < count; ++i) merges[i] = find_merge(symbols[i], symbols[i + 1]);
  while (count > 1) {
    std::size_t best = count;
    for (std::size_t i = 0; i + 1 < count; ++i) {
      if (merges[i] != nullptr && (best == count || merges[i]->rank < merges[best]->rank)) best = i;
    }
    if (best == count) break;
    symbols[best] = merges[best]->result;
    for (std::size_t i = best + 1; i + 1 < count; ++i) {
      symbols[i] = symbols[i + 1];
      merges[i] = merges[i + 1];
    }
    --count;
    if (best > 0) merges[best - 1] = find_merge(symbols[best - 1], symbols[best]);
    merges[best] = best + 1 < count ? find_merge(symbols[best], symbols[best + 1]) : nullptr;
  }
  symbols.resize(count);
}

// The same order through a heap of candidates over a linked list; stale candidates are skipped when they come
// up.
void Tokenizer::merge_long(Scratch& scratch) const {
  std::vector<std::int32_t>& symbols = scratch.symbols;
  std::vector<Scratch::Node>& nodes = scratch.nodes;
  auto& candidates = scratch.candidates;  // empty between pieces
  const auto node = [&nodes](std::int32_t i) -> Scratch::Node& { return nodes[static_cast<std::size_t>(i)]; };
  const auto count = static_cast<std::int32_t>(symbols.size());
  nodes.clear();
  for (std::int32_t i = 0; i < count; ++i) {
    nodes.push_back({symbols[static_cast<std::size_t>(i)], i - 1, i + 1 < count ? i + 1 : -1});
  }
  const auto offer = [&](std::int32_t left, std::int32_t right) {
    if (left < 0 || right < 0) return;
    if (const Merge* merge = find_merge(node(left).id, node(right).id)) {
      candidates.push({merge->rank, left, right, merge->pair});
    }
  };
  for (std::int32_t i = 0; i + 1 < count; ++i) offer(i, i + 1);
  while (!candidates.empty()) {
    const Scratch::Candidate best = candidates.top();
    candidates.pop();
    Scratch::Node& left = node(best.left);
    Scratch::Node& right = node(best.right);
    // A node that was merged away has id -1, so its pair can match nothing.
    if (left.next != best.right || pair_of(left.id, right.id) != best.pair) continue;
    left.id = find_merge(left.id, right.id)->result;
    left.next = right.next;
    if (right.next >= 0) node(right.next).previous = best.left;
    right.id = -1;
    offer(left.previous, best.left);
    offer(best.left, left.next);
  }
  symbols.clear();
  for (std::int32_t i = 0; i >= 0; i = node(i).next) symbols.push_back(node(i).id);
}

std::string Tokenizer::decode(std::span<const std::int32_t> ids, bool with_special) const {
  std::string out;
  for (const std::int32_t id : ids) {
    if (with_special || !is_special(id)) out += bytes_of(id);
  }
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
