#include "model/chat_template_value.hpp"

#include <algorithm>

#include "model/pretokenizer.hpp"
#include "model/unicode_tables.hpp"

namespace helios::model::jinja {
namespace {

bool python_space(char32_t code) {
  return is_space(code) || (code >= 0x1C && code <= 0x1F);
}

bool stripped(std::string_view point, const std::string* set) {
  if (set == nullptr) {
    const CodePoint decoded = decode_code_point(point);
    return decoded.valid && python_space(decoded.value);
  }
  for (std::string_view rest = *set; !rest.empty();) {
    const std::string_view candidate = rest.substr(0, decode_code_point(rest).length);
    if (candidate == point) return true;
    rest.remove_prefix(candidate.size());
  }
  return false;
}

std::size_t last_point_bytes(std::string_view text) {
  for (std::size_t length = 2; length <= 4 && length <= text.size(); ++length) {
    if (decode_code_point(text.substr(text.size() - length)).length == length) return length;
  }
  return 1;
}

}  // namespace

const Value* Mapping::find(std::string_view key) const {
  const auto found =
      std::find_if(items.begin(), items.end(), [&](const auto& item) { return item.first == key; });
  return found == items.end() ? nullptr : &found->second;
}

std::string_view Value::kind() const {
  constexpr std::string_view kKinds[] = {"undefined", "none",      "a boolean",   "an integer", "a string",
                                         "a list",    "a mapping", "a namespace", "a loop"};
  return kKinds[data_.index()];
}

bool Value::truth() const {
  if (const bool* value = boolean()) return *value;
  if (const std::int64_t* value = integer()) return *value != 0;
  if (const std::string* value = text()) return !value->empty();
  if (const List* value = list()) return !value->items.empty();
  if (const Mapping* value = mapping()) return !value->items.empty();
  return name_space() != nullptr || loop() != nullptr;
}

int Value::depth() const {
  if (const List* value = list()) return value->depth;
  if (const Mapping* value = mapping()) return value->depth;
  return 0;
}

std::string_view strip(std::string_view text, bool left, bool right, const std::string* set) {
  while (left && !text.empty()) {
    const std::size_t length = decode_code_point(text).length;
    if (!stripped(text.substr(0, length), set)) break;
    text.remove_prefix(length);
  }
  while (right && !text.empty()) {
    const std::size_t length = last_point_bytes(text);
    if (!stripped(text.substr(text.size() - length), set)) break;
    text.remove_suffix(length);
  }
  return text;
}

std::size_t count_code_points(std::string_view text) {
  std::size_t count = 0;
  for (; !text.empty(); ++count) text.remove_prefix(decode_code_point(text).length);
  return count;
}

std::string to_upper(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return out;
}

std::string to_lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

std::string json_string(std::string_view text) {
  constexpr std::string_view kSpecial = "\"\\\b\f\n\r\t";
  constexpr std::string_view kNames = "\"\\bfnrt";
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string out = "\"";
  for (const char c : text) {
    if (const auto known = kSpecial.find(c); known != std::string_view::npos) {
      out += '\\';
      out += kNames[known];
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out += "\\u00";
      out += kHex[static_cast<std::size_t>(c) >> 4];
      out += kHex[static_cast<std::size_t>(c) & 15];
    } else {
      out += c;
    }
  }
  return out + '"';
}

}  // namespace helios::model::jinja
