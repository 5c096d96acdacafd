#pragma once
// What is done to a text before it is cut into pieces.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace helios::model {

/// Steps, in order. Bytes that are not UTF-8 pass unchanged, and NFC does not compose across them.
class Normalizer {
 public:
  void add_nfc() { steps_.push_back({Step::Kind::nfc, {}, {}}); }
  /// Unicode's simple lower case, and "i̇" for U+0130.
  void add_lowercase() { steps_.push_back({Step::Kind::lowercase, {}, {}}); }
  /// Puts `text` in front, unless there is nothing to put it in front of.
  void add_prepend(std::string text) { steps_.push_back({Step::Kind::prepend, std::move(text), {}}); }
  /// Every `from`, from left to right, becomes `to`. `from` must not be empty.
  void add_replace(std::string from, std::string to) {
    steps_.push_back({Step::Kind::replace, std::move(from), std::move(to)});
  }

  bool empty() const noexcept { return steps_.empty(); }
  std::string apply(std::string_view text) const;

 private:
  struct Step {
    enum class Kind : std::uint8_t { nfc, lowercase, prepend, replace };
    Kind kind;
    std::string from, to;
  };
  std::vector<Step> steps_;
};

}  // namespace helios::model
