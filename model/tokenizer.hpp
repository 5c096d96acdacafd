#pragma once
// Byte-level BPE as in GPT-2, read from a GGUF file.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/gguf.hpp"
#include "model/pretokenizer.hpp"
#include "model/vocabulary.hpp"
#include "runtime/result.hpp"

namespace helios::model {

/// What a tokenizer is made of; from_gguf fills it from tokenizer.ggml.*.
struct TokenizerParts {
  std::span<const std::string> tokens;        // printable byte-level spelling, by id
  std::span<const std::int64_t> token_types;  // GGUF numbers; empty: all normal
  std::span<const std::string> merges;        // "left right", best first
  PreTokenizer pretokenizer = PreTokenizer::smollm;
  bool whole_tokens = false;  // a piece that is a normal token becomes it, whatever the merges say (Llama 3)
  std::optional<std::int32_t> bos, eos, eot;
  std::span<const std::int32_t> end_ids;  // more tokens that end an answer
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
  /// Errors: unsupported (a tokenizer model or pre-tokenizer we do not have, by name), bad_file (a key is
  /// missing, a merge names no token, an id is outside the vocabulary).
  static Result<std::shared_ptr<const Tokenizer>> from_gguf(const GgufFile& file);
  /// A Hugging Face folder's tokenizer.json. Errors: as from_gguf, io_error.
  static Result<std::shared_ptr<const Tokenizer>> from_tokenizer_json(const std::string& path,
                                                                      const HuggingFaceIds& ids = {});
  static Result<std::shared_ptr<const Tokenizer>> create(const TokenizerParts& parts);

  /// Ids of `text`. With `parse_special`, control tokens spelt in the text become their ids (rendered
  /// templates); without, they are plain text (user input). User-defined tokens are matched either way. No
  /// BOS is added: see add_bos(). Invalid UTF-8 is encoded byte by byte. A byte for which
  /// the vocabulary has no token is dropped, as `tokenizers` and llama.cpp do. Cost: n log n at worst, in one
  /// piece without a break.
  std::vector<std::int32_t> encode(std::string_view text, bool parse_special) const;
  /// Raw bytes, which may be part of a code point. A control token gives its spelling. Unknown id: empty.
  std::string_view bytes_of(std::int32_t id) const noexcept { return vocabulary_.bytes_of(id); }
  /// All bytes of `ids`; control tokens give nothing unless `with_special`.
  std::string decode(std::span<const std::int32_t> ids, bool with_special = false) const;

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
  struct Merge {  // one slot of an open-addressing table
    std::uint64_t pair = kNoPair;
    std::int32_t rank = 0;
    std::int32_t result = 0;
  };
  struct TrieNode {  // literal tokens, found longest first
    unsigned char byte = 0;
    std::int32_t id = -1;
    std::int32_t child = -1;
    std::int32_t sibling = -1;
  };
  static constexpr std::uint64_t kNoPair = ~std::uint64_t{0};
  struct Scratch;

  Tokenizer() = default;
  Result<void> add_merges(std::span<const std::string> merges);
  void add_literal(std::string_view text, std::int32_t id);
  /// Longest literal token at the start of `text`, or -1.
  std::int32_t match_literal(std::string_view text, bool parse_special, std::size_t& length) const noexcept;
  const Merge* find_merge(std::int32_t left, std::int32_t right) const noexcept;
  void encode_text(std::string_view text, Scratch& scratch, std::vector<std::int32_t>& out) const;
  void encode_piece(std::string_view piece, Scratch& scratch, std::vector<std::int32_t>& out) const;
  /// The normal token that is just this piece, or -1.
  std::int32_t whole_token(std::string_view piece, std::string& spelling) const;
  void merge_short(std::vector<std::int32_t>& symbols) const;
  void merge_long(Scratch& scratch) const;

  Vocabulary vocabulary_;
  PreTokenizer pretokenizer_ = PreTokenizer::smollm;
  bool whole_tokens_ = false;
  std::vector<Merge> merges_;  // a power of two
  std::vector<TrieNode> trie_;
  std::optional<std::int32_t> bos_, eos_;
  bool add_bos_ = false;
  std::vector<std::int32_t> end_ids_;
};

}  // namespace helios::model
