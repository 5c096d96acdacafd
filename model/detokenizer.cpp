#include "model/detokenizer.hpp"

#include "model/pretokenizer.hpp"

namespace helios::model {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

struct Partial {
  std::size_t length = 0;  // bytes of `text` that begin a code point, at least 1 if its first byte can
  bool open = false;       // all of `text` was used: more bytes could complete it
};

// How much of `text`, which begins with no whole code point, could be the beginning of one (Unicode's
// "maximal subpart": the second byte of E0, ED, F0 and F4 has a narrower range).
Partial partial_code_point(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  std::size_t need = 0;
  if (first >= 0xC2 && first <= 0xDF) need = 2;
  if (first >= 0xE0 && first <= 0xEF) need = 3;
  if (first >= 0xF0 && first <= 0xF4) need = 4;
  if (need == 0) return {1, false};
  unsigned char low = 0x80;
  unsigned char high = 0xBF;
  if (first == 0xE0) low = 0xA0;
  if (first == 0xED) high = 0x9F;
  if (first == 0xF0) low = 0x90;
  if (first == 0xF4) high = 0x8F;
  std::size_t length = 1;
  while (length < need && length < text.size() && byte(length) >= low && byte(length) <= high) {
    ++length;
    low = 0x80;
    high = 0xBF;
  }
  return {length, length == text.size() && length < need};
}

}  // namespace

std::string StreamDetokenizer::push(std::int32_t id) {
  if (tokenizer_->is_special(id) && !with_special_) return {};
  return push_bytes(tokenizer_->bytes_of(id));
}

std::string StreamDetokenizer::push_bytes(std::string_view bytes) {
  pending_ += bytes;
  std::string out;
  std::string_view rest = pending_;
  while (!rest.empty()) {
    const CodePoint point = decode_code_point(rest);
    if (point.valid) {
      out += rest.substr(0, point.length);
      rest.remove_prefix(point.length);
      continue;
    }
    const Partial partial = partial_code_point(rest);
    if (partial.open) break;
    out += kReplacement;
    rest.remove_prefix(partial.length);
  }
  pending_ = std::string(rest);
  return out;
}

std::string StreamDetokenizer::flush() {
  if (pending_.empty()) return {};
  pending_.clear();  // what is pending is one maximal subpart
  return std::string(kReplacement);
}

}  // namespace helios::model
