#include "model/vocabulary.hpp"

#include <utility>

#include "model/pretokenizer.hpp"

namespace helios::model {
namespace {

// GPT-2 shows printable Latin-1 as itself and gives the other 68 bytes U+0100 onwards, in order.
constexpr bool shows_itself(int byte) {
  return (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || (byte >= 0xAE && byte <= 0xFF);
}

constexpr int kOthers = 68;

struct ByteMap {
  std::array<char32_t, 256> printable{};
  std::array<int, 256 + kOthers> byte{};
};

constexpr ByteMap make_byte_map() {
  ByteMap map;
  map.byte.fill(-1);
  char32_t next = 256;
  for (int byte = 0; byte < 256; ++byte) {
    const char32_t code = shows_itself(byte) ? static_cast<char32_t>(byte) : next++;
    map.printable[static_cast<std::size_t>(byte)] = code;
    map.byte[code] = byte;
  }
  return map;
}

constexpr ByteMap kByteMap = make_byte_map();
static_assert(kByteMap.printable[' '] == 0x120 && kByteMap.printable[0xAD] == 0x143);

Error bad_token(std::size_t id, const char* why) {
  return fail(Errc::bad_file, "tokenizer: token " + std::to_string(id) + " " + why + ": the file is damaged");
}

// The bytes that a token's spelling stands for; false when it is not byte-level.
bool append_bytes(std::string_view spelling, std::string& out) {
  while (!spelling.empty()) {
    const CodePoint point = decode_code_point(spelling);
    const int byte = point.valid ? byte_of_printable(point.value) : -1;
    if (byte < 0) return false;
    out += static_cast<char>(byte);
    spelling.remove_prefix(point.length);
  }
  return true;
}

void append_unmarked(std::string_view spelling, std::string& out) {
  for (std::size_t at = 0; at < spelling.size();) {
    const bool mark = spelling.substr(at).starts_with(kSpaceMark);
    out += mark ? ' ' : spelling[at];
    at += mark ? kSpaceMark.size() : 1;
  }
}

}  // namespace

char32_t printable_of_byte(unsigned char byte) noexcept {
  return kByteMap.printable[byte];
}

int byte_of_printable(char32_t code_point) noexcept {
  return code_point < kByteMap.byte.size() ? kByteMap.byte[code_point] : -1;
}

int byte_of_name(std::string_view spelling) noexcept {
  const auto digit = [&](std::size_t i) {
    const char c = spelling[i];
    if (c >= '0' && c <= '9') return c - '0';
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
  };
  if (spelling.size() != 6 || !spelling.starts_with("<0x") || spelling[5] != '>') return -1;
  return digit(3) < 0 || digit(4) < 0 ? -1 : digit(3) * 16 + digit(4);
}

void append_printable(std::string& out, unsigned char byte) {
  const char32_t code = printable_of_byte(byte);  // below U+0800
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else {
    out += static_cast<char>(0xC0 | (code >> 6));
    out += static_cast<char>(0x80 | (code & 0x3F));
  }
}

Result<Vocabulary> Vocabulary::create(std::span<const std::string> tokens,
                                      std::span<const std::int64_t> types, Spelling spelt) {
  if (tokens.empty() || tokens.size() > kMaxTokens) {
    return fail(Errc::bad_file, "tokenizer: " + std::to_string(tokens.size()) + " tokens (1 to " +
                                    std::to_string(kMaxTokens) + " are allowed)");
  }
  if (!types.empty() && types.size() != tokens.size()) {
    return fail(Errc::bad_file, "tokenizer: " + std::to_string(tokens.size()) + " tokens, but " +
                                    std::to_string(types.size()) + " token types: the file is damaged");
  }
  Vocabulary vocabulary;
  vocabulary.spellings_.assign(tokens.begin(), tokens.end());
  vocabulary.types_.reserve(tokens.size());
  vocabulary.offsets_.reserve(tokens.size() + 1);
  vocabulary.offsets_.push_back(0);
  vocabulary.by_spelling_.reserve(tokens.size());
  vocabulary.byte_tokens_.fill(-1);
  std::uint64_t hash = 0xCBF29CE484222325;
  const auto mix = [&hash](unsigned char byte) { hash = (hash ^ byte) * 0x100000001B3; };
  for (std::size_t id = 0; id < tokens.size(); ++id) {
    const std::string& spelling = vocabulary.spellings_[id];
    if (spelling.empty()) return bad_token(id, "is empty");
    if (spelling.size() > kMaxTokenBytes) return bad_token(id, "is too long");
    const std::int64_t type = types.empty() ? 1 : types[id];
    if (type < 1 || type > 6) return bad_token(id, "has an unknown type");
    vocabulary.types_.push_back(static_cast<TokenType>(type));
    const auto kind = static_cast<TokenType>(type);
    const std::size_t begin = vocabulary.bytes_.size();
    if (kind == TokenType::control || kind == TokenType::user_defined) {
      vocabulary.bytes_ += spelling;
    } else if (spelt == Spelling::marked) {
      const int byte = kind == TokenType::byte ? byte_of_name(spelling) : -1;
      if (kind == TokenType::byte && byte < 0)
        return bad_token(id, "is a byte, but is not spelt like <0x0A>");
      if (byte >= 0) {
        vocabulary.bytes_ += static_cast<char>(byte);
        vocabulary.byte_tokens_[static_cast<std::size_t>(byte)] = static_cast<std::int32_t>(id);
      } else {
        append_unmarked(spelling, vocabulary.bytes_);
      }
    } else if (!append_bytes(spelling, vocabulary.bytes_)) {
      if (type == 1) return bad_token(id, "is not spelt in byte-level form");
      vocabulary.bytes_.resize(begin);  // unused fillers ("[PAD151646]") may be spelt in any way
      vocabulary.bytes_ += spelling;
    }
    vocabulary.offsets_.push_back(static_cast<std::uint32_t>(vocabulary.bytes_.size()));
    if (!vocabulary.by_spelling_.emplace(spelling, static_cast<std::int32_t>(id)).second) {
      return bad_token(id, "is spelt like an earlier one");
    }
    if (spelt == Spelling::byte_level && type == 1 && vocabulary.bytes_.size() - begin == 1) {
      vocabulary.byte_tokens_[static_cast<unsigned char>(vocabulary.bytes_[begin])] =
          static_cast<std::int32_t>(id);
    }
    for (const char c : spelling) mix(static_cast<unsigned char>(c));
    mix(0);
  }
  for (int shift = 60; shift >= 0; shift -= 4) vocabulary.hash_ += "0123456789abcdef"[(hash >> shift) & 15];
  return vocabulary;
}

std::string_view Vocabulary::bytes_of(std::int32_t id) const noexcept {
  if (!contains(id)) return {};
  const auto at = static_cast<std::size_t>(id);
  return std::string_view(bytes_).substr(offsets_[at], offsets_[at + 1] - offsets_[at]);
}

bool Vocabulary::is_special(std::int32_t id) const noexcept {
  if (!contains(id)) return false;
  const TokenType type = types_[static_cast<std::size_t>(id)];
  return type == TokenType::control || type == TokenType::unknown;
}

std::optional<std::int32_t> Vocabulary::find(std::string_view spelling) const {
  const auto found = by_spelling_.find(spelling);
  if (found == by_spelling_.end()) return std::nullopt;
  return found->second;
}

}  // namespace helios::model
