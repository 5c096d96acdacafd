#pragma once
// JSON of a model's folder: input that we do not trust, read key by key with checks.

#include <boost/json.hpp>
#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/result.hpp"

namespace helios::model {

/// A JSON object and the name that stands for it in messages. All getters: an absent key and null are the
/// same; errors are bad_file and name the file, the key and what it should be.
class JsonObject {
 public:
  static constexpr std::size_t kMaxBytes = std::size_t{64} << 20;

  /// Errors: io_error (cannot read), bad_file (not one JSON object, deeper than 32 levels, or more than
  /// `most_bytes`).
  static Result<JsonObject> read(const std::string& path, std::size_t most_bytes = kMaxBytes);
  static Result<JsonObject> parse(std::string_view text, std::string label);

  const std::string& label() const noexcept { return label_; }
  const boost::json::object& data() const noexcept { return data_; }

  /// Null when it is absent or null.
  const boost::json::value* find(std::string_view key) const;
  bool has(std::string_view key) const { return find(key) != nullptr; }

  /// A whole number in [least, most].
  Result<std::int64_t> whole(std::string_view key, std::int64_t least, std::int64_t most) const;
  Result<std::int64_t> whole_or(std::string_view key, std::int64_t least, std::int64_t most,
                                std::int64_t fallback) const;
  /// Finite.
  Result<double> number(std::string_view key) const;
  Result<double> number_or(std::string_view key, double fallback) const;
  Result<bool> flag_or(std::string_view key, bool fallback) const;
  Result<std::string> text_or(std::string_view key, std::string_view fallback) const;
  /// An object within this one; empty when absent.
  Result<JsonObject> object_or_empty(std::string_view key) const;

  Error bad(std::string_view key, std::string_view wanted) const;

 private:
  std::string label_;
  boost::json::object data_;
};

/// What prints of a foreign text, at most 80 characters, in quotes: for messages.
std::string shown(std::string_view foreign);

}  // namespace helios::model
