#include "model/normalizer.hpp"

#include <utf8proc.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "model/pretokenizer.hpp"

namespace helios::model {
namespace {

struct FreeBytes {
  void operator()(utf8proc_uint8_t* bytes) const { std::free(bytes); }
};

// `text` is UTF-8. Without memory for it, it comes back as it is.
std::string composed(std::string_view text) {
  utf8proc_uint8_t* bytes = nullptr;
  const utf8proc_ssize_t size = utf8proc_map(
      reinterpret_cast<const utf8proc_uint8_t*>(text.data()), static_cast<utf8proc_ssize_t>(text.size()),
      &bytes, static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
  const std::unique_ptr<utf8proc_uint8_t, FreeBytes> owned(bytes);
  if (size < 0) return std::string(text);
  return {reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(size)};
}

std::string nfc(std::string_view text) {
  if (std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; }))
    return std::string(text);
  std::string out;
  while (!text.empty()) {
    std::size_t valid = 0;
    while (valid < text.size()) {
      const CodePoint point = decode_code_point(text.substr(valid));
      if (!point.valid) break;
      valid += point.length;
    }
    if (valid > 0) out += composed(text.substr(0, valid));
    if (valid < text.size()) out += text[valid++];
    text.remove_prefix(valid);
  }
  return out;
}

std::string lower_case(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const CodePoint point = decode_code_point(text);
    if (!point.valid) {
      out += text[0];
    } else if (point.value == 0x130) {
      out += "i\xCC\x87";
    } else {
      utf8proc_uint8_t bytes[4];
      const auto size =
          utf8proc_encode_char(utf8proc_tolower(static_cast<utf8proc_int32_t>(point.value)), bytes);
      out.append(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(size));
    }
    text.remove_prefix(point.length);
  }
  return out;
}

std::string replaced(std::string_view text, std::string_view from, std::string_view to) {
  std::string out;
  for (std::size_t at = 0;;) {
    const std::size_t found = text.find(from, at);
    out += text.substr(at, found - at);
    if (found == std::string_view::npos) return out;
    out += to;
    at = found + from.size();
  }
}

}  // namespace

std::string Normalizer::apply(std::string_view text) const {
  std::string out(text);
  for (const Step& step : steps_) {
    switch (step.kind) {
      case Step::Kind::nfc:
        out = nfc(out);
        break;
      case Step::Kind::lowercase:
        out = lower_case(out);
        break;
      case Step::Kind::prepend:
        if (!out.empty()) out.insert(0, step.from);
        break;
      case Step::Kind::replace:
        out = replaced(out, step.from, step.to);
        break;
    }
  }
  return out;
}

}  // namespace helios::model
