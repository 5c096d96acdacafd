#include "model/json_text.hpp"

#include <boost/json.hpp>
#include <boost/json/basic_parser_impl.hpp>
#include <charconv>

namespace helios::model {
namespace {

namespace json = boost::json;

// Builds the value from the parser's events, as boost::json::parser does, but for doubles.
struct Builder {
  static constexpr std::size_t max_object_size = json::object::max_size();
  static constexpr std::size_t max_array_size = json::array::max_size();
  static constexpr std::size_t max_key_size = json::string::max_size();
  static constexpr std::size_t max_string_size = json::string::max_size();
  json::value_stack stack;

  explicit Builder(json::storage_ptr memory) { stack.reset(std::move(memory)); }

  bool on_document_begin(json::error_code&) { return true; }
  bool on_document_end(json::error_code&) { return true; }
  bool on_object_begin(json::error_code&) { return true; }
  bool on_object_end(std::size_t count, json::error_code&) { return stack.push_object(count), true; }
  bool on_array_begin(json::error_code&) { return true; }
  bool on_array_end(std::size_t count, json::error_code&) { return stack.push_array(count), true; }
  bool on_key_part(json::string_view text, std::size_t, json::error_code&) {
    return stack.push_chars(text), true;
  }
  bool on_key(json::string_view text, std::size_t, json::error_code&) { return stack.push_key(text), true; }
  bool on_string_part(json::string_view text, std::size_t, json::error_code&) {
    return stack.push_chars(text), true;
  }
  bool on_string(json::string_view text, std::size_t, json::error_code&) {
    return stack.push_string(text), true;
  }
  bool on_number_part(json::string_view, json::error_code&) { return true; }
  bool on_int64(std::int64_t value, json::string_view, json::error_code&) {
    return stack.push_int64(value), true;
  }
  bool on_uint64(std::uint64_t value, json::string_view, json::error_code&) {
    return stack.push_uint64(value), true;
  }
  // The whole text is parsed at once, so `text` is all of the number.
  bool on_double(double value, json::string_view text, json::error_code&) {
    double nearest = 0;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), nearest);
    const bool whole = read.ec == std::errc() && read.ptr == text.data() + text.size();
    return stack.push_double(whole ? nearest : value), true;
  }
  bool on_bool(bool value, json::error_code&) { return stack.push_bool(value), true; }
  bool on_null(json::error_code&) { return stack.push_null(), true; }
  bool on_comment_part(json::string_view, json::error_code&) { return true; }
  bool on_comment(json::string_view, json::error_code&) { return true; }
};

}  // namespace

Result<json::value> parse_json(std::string_view text, const std::string& label, std::size_t max_depth,
                               json::storage_ptr memory) {
  json::parse_options options;
  options.max_depth = max_depth;
  json::basic_parser<Builder> parser(options, std::move(memory));
  json::error_code error;
  const std::size_t read = parser.write_some(false, text.data(), text.size(), error);
  if (!error && read < text.size()) error = json::error::extra_data;
  if (error) return fail(Errc::bad_file, label + " is not JSON that can be read (" + error.message() + ")");
  return parser.handler().stack.release();
}

}  // namespace helios::model
