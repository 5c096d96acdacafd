#pragma once
// Text to ids and back: BPE over bytes or over code points, and Unigram; read from GGUF or from
// tokenizer.json.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "model/byte_trie.hpp"
#include "model/gguf.hpp"
#include "model/merge_table.hpp"
#include "model/normalizer.hpp"
#include "model/pretokenizer.hpp"
#include "model/unigram.hpp"
#include "model/vocabulary.hpp"
#include "runtime/result.hpp"

namespace helios::model {

/// How pieces become tokens.
/// byte_bpe: bytes are merged, best merge first (GPT-2).
/// text_bpe: code points are merged by a list (tokenizer.json of Llama 2).
/// scored_bpe: code points are merged wherever two neighbours make a token, the highest score first
/// (SentencePiece's
///   BPE). Source: https://github.com/google/sentencepiece, "bpe" model type.
/// unigram: the cut with the highest sum of scores.
enum class TokenModel : std::uint8_t { byte_bpe, text_bpe, scored_bpe, unigram };

/// A space, or the space mark where `marks` is set, in front of a text that does not begin with one.
struct SpaceRule {
  enum class Prefix : std::uint8_t { never, first, always };  // first: only where the whole input begins
  Prefix prefix = Prefix::never;
  bool marks = false;  // spaces become U+2581
};

/// Two spellings that become one token.
struct MergeText {
  std::string_view left, right;
  MergeText(std::string_view left_text, std::string_view right_text) : left(left_text), right(right_text) {}
  explicit MergeText(const std::pair<std::string, std::string>& texts)
      : left(texts.first), right(texts.second) {}
};

/// How a literal token (control or user-defined) is found, where that is out of the ordinary.
struct LiteralRule {
  std::int32_t id = 0;
  bool takes_left = false;   // the white space before it is swallowed
  bool takes_right = false;  // … after it
  bool normalized = false;   // looked for in normalised text, itself normalised
};

/// What a tokenizer is made of. The spans are only read while it is made.
struct TokenizerParts {
  TokenModel model = TokenModel::byte_bpe;
  std::span<const std::string> tokens;        // by id; spelt byte-level for byte_bpe, else with U+2581
  std::span<const std::int64_t> token_types;  // GGUF numbers; empty: all normal
  std::span<const MergeText> merges;          // byte_bpe, text_bpe: best first
  std::span<const double> scores;             // scored_bpe, unigram: by id
  std::span<const LiteralRule> literal_rules;
  Normalizer normalizer;
  SpaceRule spaces;  // applied to what is between literal tokens, after the normaliser
  PreTokenizer pretokenizer = PreTokenizer::smollm;
  bool whole_tokens = false;  // a piece that is a normal token becomes it, whatever the merges say (Llama 3)
  bool byte_fallback = true;  // not byte_bpe: code points without a token become byte tokens, if all exist
  bool fuse_unknown = true;   // not byte_bpe: neighbouring unknown code points become one unknown token
  bool strip_first_space = false;  // the text of whole sequences has one leading space less
  std::optional<std::int32_t> unknown, bos, eos, eot;
  std::span<const std::int32_t> more_ends;  // end an answer like eos
  bool add_bos = false;
};

/// What the files beside tokenizer.json say: config.json, generation_config.json, tokenizer_config.json. All
/// optional.
struct HuggingFaceIds {
  std::optional<std::int32_t> bos;   // absent: what the post-processor puts in front
  std::vector<std::int32_t> eos;     // the first is the template's; all end an answer
  std::string bos_token, eos_token;  // by spelling, where the numbers are absent
  std::optional<bool> add_bos;       // absent: whether the post-processor puts it in front
  std::int32_t vocab_rows =
      0;  // rows of the embedding: ids up to it without a token are filled like in GGUF files
};

/// Immutable; any thread may use it.
class Tokenizer {
 public:
  /// From tokenizer.ggml.*. Errors: unsupported (a tokenizer model or pre-tokenizer we do not have, by name),
  /// bad_file (a key is missing, a merge names no token, an id is outside the vocabulary).
  static Result<std::shared_ptr<const Tokenizer>> from_gguf(const GgufFile& file);
  /// From a Hugging Face tokenizer.json of at most kMaxJsonBytes. Errors: io_error, bad_file (not JSON, or
  /// not what it should be; says where), unsupported (a component that is not known, by its name).
  static Result<std::shared_ptr<const Tokenizer>> from_tokenizer_json(const std::string& path,
                                                                      const HuggingFaceIds& ids = {});
  /// The same of its text; `label` stands for the path in messages.
  static Result<std::shared_ptr<const Tokenizer>> parse_tokenizer_json(std::string_view json,
                                                                       const std::string& label,
                                                                       const HuggingFaceIds& ids = {});
  static constexpr std::size_t kMaxJsonBytes = std::size_t{64} << 20;

  /// Errors: bad_file.
  static Result<std::shared_ptr<const Tokenizer>> create(const TokenizerParts& parts);

  /// Ids of `text`. With `parse_special`, control tokens spelt in the text become their ids (rendered
  /// templates); without, they are plain text (user input). User-defined tokens are matched either way. No
  /// BOS is added: see add_bos(). Invalid UTF-8 is encoded byte by byte. What no token stands for becomes the
  /// unknown token, or is dropped where there is none, as `tokenizers` does. Cost: n log n at worst, in one
  /// piece without a break.
  std::vector<std::int32_t> encode(std::string_view text, bool parse_special) const;
  /// Raw bytes, which may be part of a code point. A control token gives its spelling. Unknown id: empty.
  std::string_view bytes_of(std::int32_t id) const noexcept { return vocabulary_.bytes_of(id); }
  /// The text of a whole sequence; control tokens give nothing unless `with_special`. Where encoding puts a
  /// space in front (strips_first_space()), it is taken off again.
  std::string decode(std::span<const std::int32_t> ids, bool with_special = false) const;

  /// True when the first space of a whole text is the tokenizer's own. An answer that goes on from a prompt
  /// keeps its first space, which is between the two.
  bool strips_first_space() const noexcept { return strip_first_space_; }
  bool is_special(std::int32_t id) const noexcept { return vocabulary_.is_special(id); }
  std::optional<std::int32_t> bos_id() const noexcept { return bos_; }
  std::optional<std::int32_t> eos_id() const noexcept { return eos_; }
  /// True when the file asks for BOS before a prompt (templates spell it themselves).
  bool add_bos() const noexcept { return add_bos_; }
  /// Spelling of BOS and EOS for templates; empty when there is none.
  std::string bos_text() const;
  std::string eos_text() const;
  /// Sorted ids that end an answer: EOS, EOT, and control tokens of the usual names (<|im_end|>, <|eot_id|>,
  /// …).
  std::span<const std::int32_t> end_ids() const noexcept { return end_ids_; }
  bool is_end(std::int32_t id) const noexcept;

  std::int32_t vocab_size() const noexcept { return vocabulary_.size(); }
  /// Vocabulary::hash().
  const std::string& vocab_hash() const noexcept { return vocabulary_.hash(); }
  const Vocabulary& vocabulary() const noexcept { return vocabulary_; }

 private:
  struct Scratch;
  struct Literal {
    std::int32_t id = -1;
    std::size_t begin = 0;
    std::size_t end = 0;
  };

  Tokenizer() = default;
  Result<void> set_ids(const TokenizerParts& parts);
  Result<void> add_merges(std::span<const MergeText> merges);
  Result<void> add_scored_merges(std::span<const double> scores);
  Result<void> add_unigram(std::span<const double> scores);
  void add_literals(std::span<const LiteralRule> rules);

  /// The next literal token of `text` at or after `from`; id -1 when there is none.
  Literal next_literal(const ByteTrie& trie, std::string_view text, std::size_t from,
                       bool parse_special) const;
  void encode_text(std::string_view text, bool first, Scratch& scratch, std::vector<std::int32_t>& out) const;
  void encode_piece(std::string_view piece, Scratch& scratch, std::vector<std::int32_t>& out) const;
  void append_bytes(std::string_view piece, Scratch& scratch) const;
  void append_merged(std::string_view piece, Scratch& scratch) const;
  void append_cut(std::string_view piece, Scratch& scratch) const;
  /// Text that no token stands for: byte tokens, or the unknown one.
  void append_unknown(std::string_view text, std::vector<std::int32_t>& out) const;
  /// The normal token that is spelt so, or -1.
  std::int32_t normal_token(std::string_view spelling) const;

  Vocabulary vocabulary_;
  TokenModel model_ = TokenModel::byte_bpe;
  Normalizer normalizer_;
  SpaceRule spaces_;
  PreTokenizer pretokenizer_ = PreTokenizer::smollm;
  bool whole_tokens_ = false;
  bool byte_fallback_ = true;
  bool fuse_unknown_ = true;
  bool strip_first_space_ = false;
  MergeTable merges_;
  Unigram unigram_;
  // scored_bpe: code points that are no tokens and yet parts of some; symbol = vocab_size() + index.
  std::vector<std::string> parts_;
  std::unordered_map<std::string_view, std::int32_t> part_symbols_;  // views into parts_, which never moves
  ByteTrie literals_;                                                // in the text as it is
  ByteTrie normalized_literals_;                                     // in the normalised text
  std::unordered_map<std::int32_t, LiteralRule> literal_rules_;
  std::optional<std::int32_t> unknown_, bos_, eos_;
  bool add_bos_ = false;
  std::vector<std::int32_t> end_ids_;
};

}  // namespace helios::model
