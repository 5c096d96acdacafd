#pragma once
// Tokens to a tree. Whatever the evaluator cannot do is refused here, by name.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace helios::model::jinja {

enum class Op : std::uint8_t {
  // leaves
  string,
  integer,
  boolean,
  none,
  variable,
  // containers: args
  list,
  mapping,  // mapping: key, value, key, value, …
  // access: args[0] is the object
  attribute,  // .name
  index,      // args[1]
  slice,      // args[1..3]: start, stop, step; null when left out
  // operators: args
  negate,
  logical_not,
  logical_and,
  logical_or,
  add,
  subtract,
  multiply,
  floor_divide,
  modulo,
  concatenate,
  equal,
  not_equal,
  less,
  less_equal,
  greater,
  greater_equal,
  in,
  not_in,
  conditional,  // args: value, condition, other (null: undefined)
  // named; args[0] is the object of filter, test and method
  filter,
  test,
  method,
  function,
};

struct Expr {
  Op op = Op::none;
  int line = 0;
  int depth = 1;      // of the tree below: bounds the evaluator's recursion
  bool flag = false;  // boolean's value; test: `is not`
  std::int64_t integer = 0;
  std::string text;  // string's value, or a name
  std::vector<std::unique_ptr<Expr>> args;
  std::vector<std::pair<std::string, std::unique_ptr<Expr>>> named;  // keyword arguments
};
using ExprPtr = std::unique_ptr<Expr>;

struct Node {
  enum class Kind : std::uint8_t { text, print, branch, loop, set, set_attribute, stop_loop, next_turn };
  struct Arm {
    ExprPtr condition;  // null: else
    std::vector<Node> body;
  };
  Kind kind = Kind::text;
  int line = 0;
  std::string text;                  // text; set_attribute: the attribute
  std::vector<std::string> targets;  // loop and set: one name or two (loop); set_attribute: the object
  ExprPtr value;                     // print, set; loop: what is walked over
  ExprPtr condition;                 // loop: filter, may be null
  std::vector<Arm> arms;             // branch
  std::vector<Node> body;            // loop
  std::vector<Node> otherwise;       // loop: when there was no turn
};

/// `nesting` bounds blocks within blocks and brackets within brackets. Throws Failure: unsupported, bad_file.
std::vector<Node> parse(std::string_view source, int nesting);

}  // namespace helios::model::jinja
