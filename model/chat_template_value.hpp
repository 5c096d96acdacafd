#pragma once
// Values of the template engine: immutable but for namespaces, shared by reference.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace helios::model::jinja {

class Value;
struct List {
  std::vector<Value> items;
  int depth = 1;  // of lists and mappings within each other
};
struct Mapping {
  std::vector<std::pair<std::string, Value>> items;  // in the order of insertion; small
  int depth = 1;
  const Value* find(std::string_view key) const;
};
struct Namespace {
  std::map<std::string, Value, std::less<>> items;
};
struct Loop {
  std::shared_ptr<const List> items;
  std::size_t index = 0;  // 0-based
};
struct Undefined {};
struct None {};

class Value {
 public:
  using Text = std::shared_ptr<const std::string>;
  using Data =
      std::variant<Undefined, None, bool, std::int64_t, Text, std::shared_ptr<const List>,
                   std::shared_ptr<const Mapping>, std::shared_ptr<Namespace>, std::shared_ptr<Loop>>;

  Value() = default;
  template <class T>
    requires std::is_constructible_v<Data, T>
  explicit Value(T data) : data_(std::move(data)) {}
  static Value of(std::string text) {
    return Value(Text(std::make_shared<const std::string>(std::move(text))));
  }

  bool is_undefined() const { return data_.index() == 0; }
  const std::string* text() const { return held<Text>(); }
  const List* list() const { return held<std::shared_ptr<const List>>(); }
  const Mapping* mapping() const { return held<std::shared_ptr<const Mapping>>(); }
  Namespace* name_space() const {
    const auto* held_value = std::get_if<std::shared_ptr<Namespace>>(&data_);
    return held_value != nullptr ? held_value->get() : nullptr;
  }
  Loop* loop() const {
    const auto* held_value = std::get_if<std::shared_ptr<Loop>>(&data_);
    return held_value != nullptr ? held_value->get() : nullptr;
  }
  const std::int64_t* integer() const { return std::get_if<std::int64_t>(&data_); }
  const bool* boolean() const { return std::get_if<bool>(&data_); }
  const Data& data() const { return data_; }

  /// "a string", "undefined", …
  std::string_view kind() const;
  /// Python's truth.
  bool truth() const;
  int depth() const;

 private:
  template <class P>
  const typename P::element_type* held() const {
    const P* pointer = std::get_if<P>(&data_);
    return pointer != nullptr ? pointer->get() : nullptr;
  }
  Data data_;
};

/// Python's str.strip() and its halves; with `set`, the code points to strip instead of white space.
std::string_view strip(std::string_view text, bool left, bool right, const std::string* set = nullptr);
std::size_t count_code_points(std::string_view text);
/// ASCII letters only: roles and names.
std::string to_upper(std::string_view text);
std::string to_lower(std::string_view text);
/// json.dumps of a string with ensure_ascii=False.
std::string json_string(std::string_view text);

}  // namespace helios::model::jinja
