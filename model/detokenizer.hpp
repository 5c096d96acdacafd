#pragma once
// Tokens to text while they arrive: only whole code points leave.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "model/tokenizer.hpp"

namespace helios::model {

/// Holds back the bytes of an unfinished code point (at most 3). What leaves is always valid UTF-8: bytes
/// that can belong to no code point become U+FFFD, one per maximal wrong part. One per stream; not
/// thread-safe.
class StreamDetokenizer {
 public:
  explicit StreamDetokenizer(std::shared_ptr<const Tokenizer> tokenizer, bool with_special = false)
      : tokenizer_(std::move(tokenizer)), with_special_(with_special) {}

  /// Text that is complete after this token; often empty. Control tokens give none unless `with_special`; ids
  /// outside the vocabulary give none.
  std::string push(std::int32_t id);
  /// The same for raw bytes.
  std::string push_bytes(std::string_view bytes);
  /// At the end: U+FFFD if a code point was left unfinished, else nothing. The object can be used again.
  std::string flush();

 private:
  std::shared_ptr<const Tokenizer> tokenizer_;
  bool with_special_;
  std::string pending_;
};

}  // namespace helios::model
