#include "model/json_object.hpp"

#include <fmt/format.h>

#include <cmath>

#include "model/byte_source.hpp"

namespace helios::model {

namespace json = boost::json;

std::string shown(std::string_view foreign) {
  std::string out = "'";
  for (const char c : foreign.substr(0, 80)) out += (c >= ' ' && c <= '~') ? c : '?';
  if (foreign.size() > 80) out += "...";
  return out + "'";
}

Result<JsonObject> JsonObject::read(const std::string& path, std::size_t most_bytes) {
  const Result<std::string> text = read_text(path, most_bytes);
  if (!text) return text.error();
  return parse(*text, path);
}

Result<JsonObject> JsonObject::parse(std::string_view text, std::string label) {
  boost::system::error_code code;
  json::value value = json::parse(text, code);  // its own limit of depth is 32
  if (code || !value.is_object()) {
    return fail(Errc::bad_file, fmt::format("{} is not a JSON object ({}): fetch it again", label,
                                            code ? code.message() : "another kind of value"));
  }
  JsonObject object;
  object.label_ = std::move(label);
  object.data_ = std::move(value.as_object());
  return object;
}

const json::value* JsonObject::find(std::string_view key) const {
  const json::value* value = data_.if_contains(key);
  return value != nullptr && !value->is_null() ? value : nullptr;
}

Error JsonObject::bad(std::string_view key, std::string_view wanted) const {
  const json::value* value = find(key);
  return fail(Errc::bad_file, value == nullptr
                                  ? fmt::format("{}: \"{}\" is missing ({} is needed)", label_, key, wanted)
                                  : fmt::format("{}: \"{}\" is {}, it must be {}", label_, key,
                                                shown(json::serialize(*value)), wanted));
}

Result<std::int64_t> JsonObject::whole(std::string_view key, std::int64_t least, std::int64_t most) const {
  const json::value* value = find(key);
  const auto wrong = [&] { return bad(key, fmt::format("a whole number in {}..{}", least, most)); };
  if (value == nullptr) return wrong();
  boost::system::error_code code;
  const auto number = value->to_number<std::int64_t>(code);  // refuses fractions and what does not fit
  if (code || number < least || number > most) return wrong();
  return number;
}

Result<std::int64_t> JsonObject::whole_or(std::string_view key, std::int64_t least, std::int64_t most,
                                          std::int64_t fallback) const {
  if (!has(key)) return fallback;
  return whole(key, least, most);
}

Result<double> JsonObject::number(std::string_view key) const {
  const json::value* value = find(key);
  if (value == nullptr || !value->is_number()) return bad(key, "a number");
  boost::system::error_code code;
  const auto number = value->to_number<double>(code);
  if (code || !std::isfinite(number)) return bad(key, "a finite number");
  return number;
}

Result<double> JsonObject::number_or(std::string_view key, double fallback) const {
  if (!has(key)) return fallback;
  return number(key);
}

Result<bool> JsonObject::flag_or(std::string_view key, bool fallback) const {
  const json::value* value = find(key);
  if (value == nullptr) return fallback;
  if (!value->is_bool()) return bad(key, "true or false");
  return value->get_bool();
}

Result<std::string> JsonObject::text_or(std::string_view key, std::string_view fallback) const {
  const json::value* value = find(key);
  if (value == nullptr) return std::string(fallback);
  if (!value->is_string()) return bad(key, "a string");
  return std::string(value->get_string());
}

Result<JsonObject> JsonObject::object_or_empty(std::string_view key) const {
  JsonObject object;
  object.label_ = fmt::format("{}: {}", label_, key);
  const json::value* value = find(key);
  if (value == nullptr) return object;
  if (!value->is_object()) return bad(key, "an object");
  object.data_ = value->get_object();
  return object;
}

}  // namespace helios::model
