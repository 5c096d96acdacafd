#include "model/chat_template_eval.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "model/chat_template_lexer.hpp"
#include "model/pretokenizer.hpp"

namespace helios::model::jinja {
namespace {

constexpr int kMaxValueDepth = 64;

enum class Flow : std::uint8_t { next, stop_loop, next_turn };

class Evaluator {
 public:
  Evaluator(std::map<std::string, Value, std::less<>> globals, const Budget& budget) : budget_(budget) {
    scopes_.push_back(std::move(globals));
  }

  std::string run(const std::vector<Node>& nodes) {
    execute(nodes);
    return std::move(output_);
  }

 private:
  using Scope = std::map<std::string, Value, std::less<>>;

  // --- budgets ---

  void step(int line, std::size_t count = 1) {
    if (count > budget_.steps)
      raise(Errc::too_long, line, "too many steps: the template or the conversation is too long");
    budget_.steps -= count;
  }
  void work(int line, std::size_t bytes) {
    if (bytes > budget_.work_bytes) raise(Errc::too_long, line, "the template makes too much text");
    budget_.work_bytes -= bytes;
  }
  Value text(int line, std::string value) {
    work(line, value.size());
    return Value::of(std::move(value));
  }
  Value list(int line, std::vector<Value> items) {
    work(line, items.size() * sizeof(Value));
    auto made = std::make_shared<List>();
    for (const Value& item : items) made->depth = std::max(made->depth, member_depth(line, item) + 1);
    made->items = std::move(items);
    return Value(std::shared_ptr<const List>(std::move(made)));
  }
  // Namespaces change, so one within a container could come to hold itself; deep values would deepen every
  // recursion.
  int member_depth(int line, const Value& value) {
    if (value.name_space() != nullptr || value.loop() != nullptr) {
      raise(Errc::unsupported, line, std::string(value.kind()) + " inside of another value is not supported");
    }
    if (value.depth() >= kMaxValueDepth) raise(Errc::too_long, line, "a value is nested too deeply");
    return value.depth();
  }
  // A search is quadratic at worst, and both strings may be chosen to make it so.
  void search(int line, std::string_view whole, std::string_view part) {
    step(line, whole.size() / 256 * (part.size() + 1) + 1);
  }
  [[noreturn]] static void bad(int line, const std::string& what) { raise(Errc::bad_request, line, what); }

  // --- statements ---

  Flow execute(const std::vector<Node>& nodes) {
    for (const Node& node : nodes) {
      step(node.line);
      const Flow flow = execute(node);
      if (flow != Flow::next) return flow;
    }
    return Flow::next;
  }

  Flow execute(const Node& node) {
    switch (node.kind) {
      case Node::Kind::text:
        emit(node.line, node.text);
        return Flow::next;
      case Node::Kind::print:
        emit(node.line, printed(node.line, eval(*node.value)));
        return Flow::next;
      case Node::Kind::branch:
        for (const Node::Arm& arm : node.arms) {
          if (arm.condition == nullptr || eval(*arm.condition).truth()) return execute(arm.body);
        }
        return Flow::next;
      case Node::Kind::loop:
        return run_loop(node);
      case Node::Kind::set:
        scopes_.back().insert_or_assign(node.targets[0], eval(*node.value));
        return Flow::next;
      case Node::Kind::set_attribute:
        set_attribute(node);
        return Flow::next;
      case Node::Kind::stop_loop:
        return Flow::stop_loop;
      case Node::Kind::next_turn:
        return Flow::next_turn;
    }
    return Flow::next;
  }

  void emit(int line, std::string_view value) {
    if (value.size() > budget_.output_bytes - output_.size())
      raise(Errc::too_long, line, "the prompt is too long");
    output_ += value;
  }

  void set_attribute(const Node& node) {
    Namespace* target = lookup(node.targets[0]).name_space();
    if (target == nullptr)
      bad(node.line, "'" + node.targets[0] + "' is not a namespace, so it has nothing to set");
    Value value = eval(*node.value);
    member_depth(node.line, value);
    target->items.insert_or_assign(node.text, std::move(value));
  }

  void bind(const Node& node, const Value& item) {
    if (node.targets.size() == 1) {
      scopes_.back().insert_or_assign(node.targets[0], item);
      return;
    }
    const List* pair = item.list();
    if (pair == nullptr || pair->items.size() != 2) bad(node.line, "a loop over two names needs pairs");
    scopes_.back().insert_or_assign(node.targets[0], pair->items[0]);
    scopes_.back().insert_or_assign(node.targets[1], pair->items[1]);
  }

  Flow run_loop(const Node& node) {
    std::vector<Value> items = elements(node.line, eval(*node.value));
    if (node.condition != nullptr) {
      std::vector<Value> kept;
      for (Value& item : items) {
        step(node.line);
        scopes_.emplace_back();
        bind(node, item);
        const bool keep = eval(*node.condition).truth();
        scopes_.pop_back();
        if (keep) kept.push_back(std::move(item));
      }
      items = std::move(kept);
    }
    if (items.empty()) {
      scopes_.emplace_back();
      const Flow flow = execute(node.otherwise);  // break and continue here are those of the loop around
      scopes_.pop_back();
      return flow;
    }
    auto made = std::make_shared<List>();
    made->items = std::move(items);
    const std::shared_ptr<const List> walked = std::move(made);
    const auto loop = std::make_shared<Loop>();
    loop->items = walked;
    for (std::size_t i = 0; i < walked->items.size(); ++i) {
      step(node.line);
      loop->index = i;
      scopes_.emplace_back();  // what a turn sets is gone after it
      scopes_.back().emplace("loop", Value(loop));
      bind(node, walked->items[i]);
      const Flow flow = execute(node.body);
      scopes_.pop_back();
      if (flow == Flow::stop_loop) break;
    }
    return Flow::next;
  }

  std::vector<Value> elements(int line, const Value& value) {
    if (value.is_undefined()) return {};
    if (const List* items = value.list()) {
      work(line, items->items.size() * sizeof(Value));
      return items->items;
    }
    std::vector<Value> out;
    if (const Mapping* items = value.mapping()) {
      for (const auto& item : items->items) out.push_back(text(line, item.first));
      return out;
    }
    if (const std::string* string = value.text()) {
      work(line, string->size() * sizeof(Value));
      for (std::string_view rest = *string; !rest.empty();) {
        const std::size_t length = decode_code_point(rest).length;
        out.push_back(text(line, std::string(rest.substr(0, length))));
        rest.remove_prefix(length);
      }
      return out;
    }
    bad(line, std::string(value.kind()) + " cannot be walked over");
  }

  // --- values ---

  Value lookup(std::string_view name) const {
    for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
      if (const auto found = scope->find(name); found != scope->end()) return found->second;
    }
    return Value();
  }

  std::string printed(int line, const Value& value) {
    if (value.is_undefined()) return {};
    if (const std::string* string = value.text()) return *string;
    if (const std::int64_t* number = value.integer()) return std::to_string(*number);
    if (const bool* boolean = value.boolean()) return *boolean ? "True" : "False";
    if (std::holds_alternative<None>(value.data())) return "None";
    raise(Errc::unsupported, line,
          "printing " + std::string(value.kind()) + " is not supported (use tojson)");
  }

  bool equal(int line, const Value& a, const Value& b) {
    step(line);
    const auto number = [](const Value& v) -> std::optional<std::int64_t> {
      if (const bool* boolean = v.boolean()) return *boolean ? 1 : 0;
      if (const std::int64_t* integer = v.integer()) return *integer;
      return std::nullopt;
    };
    if (const auto x = number(a), y = number(b); x || y) return x == y;
    if (a.data().index() != b.data().index()) return false;
    if (const std::string* x = a.text()) return *x == *b.text();
    if (const List* x = a.list()) {
      const List* y = b.list();
      if (x->items.size() != y->items.size()) return false;
      for (std::size_t i = 0; i < x->items.size(); ++i) {
        if (!equal(line, x->items[i], y->items[i])) return false;
      }
      return true;
    }
    if (const Mapping* x = a.mapping()) {
      const Mapping* y = b.mapping();
      if (x->items.size() != y->items.size()) return false;
      for (const auto& [key, value] : x->items) {
        const Value* other = y->find(key);
        if (other == nullptr || !equal(line, value, *other)) return false;
      }
      return true;
    }
    if (a.name_space() != nullptr) return a.name_space() == b.name_space();
    if (a.loop() != nullptr) return a.loop() == b.loop();
    return true;  // undefined and none
  }

  bool contains(int line, const Value& container, const Value& value) {
    if (container.is_undefined()) return false;
    if (const std::string* whole = container.text()) {
      const std::string* part = value.text();
      if (part == nullptr) bad(line, "'in' a string needs a string, not " + std::string(value.kind()));
      search(line, *whole, *part);
      return whole->find(*part) != std::string::npos;
    }
    if (const List* items = container.list()) {
      return std::any_of(items->items.begin(), items->items.end(),
                         [&](const Value& item) { return equal(line, item, value); });
    }
    if (const Mapping* items = container.mapping()) {
      const std::string* key = value.text();
      step(line, items->items.size());
      return key != nullptr && items->find(*key) != nullptr;
    }
    bad(line, "'in' needs a string, a list or a mapping, not " + std::string(container.kind()));
  }

  Value eval(const Expr& expr) {
    step(expr.line);
    switch (expr.op) {
      case Op::string:
        return text(expr.line, expr.text);
      case Op::integer:
        return Value(expr.integer);
      case Op::boolean:
        return Value(expr.flag);
      case Op::none:
        return Value(None{});
      case Op::variable:
        return lookup(expr.text);
      case Op::list: {
        std::vector<Value> items;
        for (const ExprPtr& item : expr.args) items.push_back(eval(*item));
        return list(expr.line, std::move(items));
      }
      case Op::mapping:
        return make_mapping(expr);
      case Op::attribute:
        return attribute(expr.line, eval(*expr.args[0]), expr.text);
      case Op::index:
        return index(expr);
      case Op::slice:
        return slice(expr);
      case Op::logical_not:
        return Value(!eval(*expr.args[0]).truth());
      case Op::logical_and: {
        Value left = eval(*expr.args[0]);
        return left.truth() ? eval(*expr.args[1]) : left;
      }
      case Op::logical_or: {
        Value left = eval(*expr.args[0]);
        return left.truth() ? left : eval(*expr.args[1]);
      }
      case Op::conditional:
        if (eval(*expr.args[1]).truth()) return eval(*expr.args[0]);
        return expr.args[2] != nullptr ? eval(*expr.args[2]) : Value();
      case Op::negate:
      case Op::add:
      case Op::subtract:
      case Op::multiply:
      case Op::floor_divide:
      case Op::modulo:
        return arithmetic(expr);
      case Op::concatenate: {
        std::string left = printed(expr.line, eval(*expr.args[0]));
        return text(expr.line, left + printed(expr.line, eval(*expr.args[1])));
      }
      case Op::equal:
      case Op::not_equal:
      case Op::less:
      case Op::less_equal:
      case Op::greater:
      case Op::greater_equal:
      case Op::in:
      case Op::not_in:
        return compare(expr);
      case Op::filter:
        return filter(expr);
      case Op::test:
        return Value(test(eval(*expr.args[0]), expr.text) != expr.flag);
      case Op::method:
        return method(expr);
      case Op::function:
        return function(expr);
    }
    raise(Errc::internal, expr.line, "an unknown expression");
  }

  Value make_mapping(const Expr& expr) {
    auto made = std::make_shared<Mapping>();
    for (std::size_t i = 0; i < expr.args.size(); i += 2) {
      const Value key = eval(*expr.args[i]);
      if (key.text() == nullptr)
        raise(Errc::unsupported, expr.line, "a key that is no string is not supported");
      Value value = eval(*expr.args[i + 1]);
      made->depth = std::max(made->depth, member_depth(expr.line, value) + 1);
      work(expr.line, key.text()->size() + sizeof(Value));
      step(expr.line, made->items.size());
      if (const Value* old = made->find(*key.text())) {
        *const_cast<Value*>(old) = std::move(value);
      } else {
        made->items.emplace_back(*key.text(), std::move(value));
      }
    }
    return Value(std::shared_ptr<const Mapping>(std::move(made)));
  }

  static Value loop_attribute(const Loop& loop, std::string_view name) {
    const std::vector<Value>& items = loop.items->items;
    const auto number = [](std::size_t value) { return Value(static_cast<std::int64_t>(value)); };
    if (name == "index") return number(loop.index + 1);
    if (name == "index0") return number(loop.index);
    if (name == "first") return Value(loop.index == 0);
    if (name == "last") return Value(loop.index + 1 == items.size());
    if (name == "length") return number(items.size());
    if (name == "revindex") return number(items.size() - loop.index);
    if (name == "revindex0") return number(items.size() - loop.index - 1);
    if (name == "previtem") return loop.index > 0 ? items[loop.index - 1] : Value();
    if (name == "nextitem") return loop.index + 1 < items.size() ? items[loop.index + 1] : Value();
    return Value();
  }

  Value attribute(int line, const Value& object, std::string_view name) {
    if (object.is_undefined()) bad(line, "'" + std::string(name) + "' of an undefined value");
    if (const Mapping* items = object.mapping()) {
      step(line, items->items.size());
      const Value* found = items->find(name);
      return found != nullptr ? *found : Value();
    }
    if (const Namespace* items = object.name_space()) {
      const auto found = items->items.find(name);
      return found != items->items.end() ? found->second : Value();
    }
    if (const Loop* loop = object.loop()) return loop_attribute(*loop, name);
    return Value();
  }

  Value index(const Expr& expr) {
    const Value object = eval(*expr.args[0]);
    const Value key = eval(*expr.args[1]);
    if (const std::string* name = key.text()) return attribute(expr.line, object, *name);
    if (object.is_undefined()) bad(expr.line, "an element of an undefined value");
    const std::int64_t* at = key.integer();
    if (at == nullptr || (object.list() == nullptr && object.text() == nullptr)) return Value();
    if (const List* items = object.list()) {
      const auto size = static_cast<std::int64_t>(items->items.size());
      const std::int64_t position = *at < 0 ? *at + size : *at;
      return position >= 0 && position < size ? items->items[static_cast<std::size_t>(position)] : Value();
    }
    const std::vector<std::string_view> points = code_points(expr.line, *object.text());
    const auto size = static_cast<std::int64_t>(points.size());
    const std::int64_t position = *at < 0 ? *at + size : *at;
    if (position < 0 || position >= size) return Value();
    return text(expr.line, std::string(points[static_cast<std::size_t>(position)]));
  }

  std::vector<std::string_view> code_points(int line, std::string_view string) {
    work(line, string.size());
    std::vector<std::string_view> out;
    while (!string.empty()) {
      const std::size_t length = decode_code_point(string).length;
      out.push_back(string.substr(0, length));
      string.remove_prefix(length);
    }
    return out;
  }

  // Python's rules for a slice of `size` elements; calls take(position) for each.
  template <class Take>
  void walk_slice(const Expr& expr, std::int64_t size, Take take) {
    const auto bound = [&](std::size_t i) -> std::optional<std::int64_t> {
      if (expr.args[i] == nullptr) return std::nullopt;
      const Value value = eval(*expr.args[i]);
      if (std::holds_alternative<None>(value.data())) return std::nullopt;
      if (value.integer() == nullptr)
        bad(expr.line, "a slice needs integers, not " + std::string(value.kind()));
      return *value.integer();
    };
    const std::optional<std::int64_t> start = bound(1);
    const std::optional<std::int64_t> stop = bound(2);
    const std::int64_t stride = bound(3).value_or(1);
    if (stride == 0) bad(expr.line, "a slice's step is 0");
    const bool forward = stride > 0;
    const std::int64_t lowest = forward ? 0 : -1;
    const std::int64_t highest = forward ? size : size - 1;
    const auto clamp = [&](std::int64_t at) { return std::clamp(at < 0 ? at + size : at, lowest, highest); };
    std::int64_t at = start ? clamp(*start) : forward ? 0 : size - 1;
    const std::int64_t end = stop ? clamp(*stop) : forward ? size : -1;
    while (forward ? at < end : at > end) {
      take(static_cast<std::size_t>(at));
      if (__builtin_add_overflow(at, stride, &at)) break;
    }
  }

  Value slice(const Expr& expr) {
    const Value object = eval(*expr.args[0]);
    if (const List* items = object.list()) {
      std::vector<Value> out;
      walk_slice(expr, static_cast<std::int64_t>(items->items.size()),
                 [&](std::size_t at) { out.push_back(items->items[at]); });
      return list(expr.line, std::move(out));
    }
    if (const std::string* string = object.text()) {
      const std::vector<std::string_view> points = code_points(expr.line, *string);
      std::string out;
      walk_slice(expr, static_cast<std::int64_t>(points.size()), [&](std::size_t at) { out += points[at]; });
      return text(expr.line, std::move(out));
    }
    bad(expr.line, "a slice of " + std::string(object.kind()));
  }

  Value arithmetic(const Expr& expr) {
    const Value left = eval(*expr.args[0]);
    if (expr.op == Op::negate) {
      std::int64_t out = 0;
      if (left.integer() == nullptr) bad(expr.line, "'-' needs an integer, not " + std::string(left.kind()));
      if (__builtin_sub_overflow(0, *left.integer(), &out)) bad(expr.line, "a number is too large");
      return Value(out);
    }
    const Value right = eval(*expr.args[1]);
    if (expr.op == Op::add && left.text() != nullptr && right.text() != nullptr) {
      return text(expr.line, *left.text() + *right.text());
    }
    if (expr.op == Op::add && left.list() != nullptr && right.list() != nullptr) {
      std::vector<Value> items = left.list()->items;
      items.insert(items.end(), right.list()->items.begin(), right.list()->items.end());
      return list(expr.line, std::move(items));
    }
    if (left.integer() == nullptr || right.integer() == nullptr) {
      bad(expr.line,
          "cannot calculate with " + std::string(left.kind()) + " and " + std::string(right.kind()));
    }
    return Value(calculate(expr, *left.integer(), *right.integer()));
  }

  static std::int64_t calculate(const Expr& expr, std::int64_t a, std::int64_t b) {
    std::int64_t out = 0;
    bool overflow = false;
    switch (expr.op) {
      case Op::add:
        overflow = __builtin_add_overflow(a, b, &out);
        break;
      case Op::subtract:
        overflow = __builtin_sub_overflow(a, b, &out);
        break;
      case Op::multiply:
        overflow = __builtin_mul_overflow(a, b, &out);
        break;
      default: {  // Python rounds down; the remainder has the divisor's sign
        if (b == 0) bad(expr.line, "division by zero");
        if (b == -1) {
          overflow = __builtin_sub_overflow(0, a, &out);
          if (expr.op == Op::modulo) return 0;
          break;
        }
        const bool adjust = a % b != 0 && (a < 0) != (b < 0);
        out = expr.op == Op::modulo ? a % b + (adjust ? b : 0) : a / b - (adjust ? 1 : 0);
      }
    }
    if (overflow) bad(expr.line, "a number is too large");
    return out;
  }

  Value compare(const Expr& expr) {
    const Value left = eval(*expr.args[0]);
    const Value right = eval(*expr.args[1]);
    switch (expr.op) {
      case Op::equal:
        return Value(equal(expr.line, left, right));
      case Op::not_equal:
        return Value(!equal(expr.line, left, right));
      case Op::in:
        return Value(contains(expr.line, right, left));
      case Op::not_in:
        return Value(!contains(expr.line, right, left));
      default:
        break;
    }
    int order = 0;
    if (left.integer() != nullptr && right.integer() != nullptr) {
      order = *left.integer() < *right.integer() ? -1 : *left.integer() > *right.integer() ? 1 : 0;
    } else if (left.text() != nullptr && right.text() != nullptr) {
      order = left.text()->compare(*right.text());  // UTF-8 sorts as its code points do
    } else {
      bad(expr.line, "cannot order " + std::string(left.kind()) + " and " + std::string(right.kind()));
    }
    switch (expr.op) {
      case Op::less:
        return Value(order < 0);
      case Op::less_equal:
        return Value(order <= 0);
      case Op::greater:
        return Value(order > 0);
      default:
        return Value(order >= 0);
    }
  }

  static bool test(const Value& value, std::string_view name) {
    const bool* boolean = value.boolean();
    if (name == "defined") return !value.is_undefined();
    if (name == "undefined") return value.is_undefined();
    if (name == "none") return std::holds_alternative<None>(value.data());
    if (name == "string") return value.text() != nullptr;
    if (name == "number") return value.integer() != nullptr || boolean != nullptr;
    if (name == "integer") return value.integer() != nullptr;
    if (name == "boolean") return boolean != nullptr;
    if (name == "true") return boolean != nullptr && *boolean;
    if (name == "false") return boolean != nullptr && !*boolean;
    if (name == "mapping") return value.mapping() != nullptr;
    if (name == "callable") return false;  // no value is; functions are not values here
    const bool walks = value.text() != nullptr || value.list() != nullptr || value.mapping() != nullptr;
    return walks || (name == "iterable" && (value.is_undefined() || value.loop() != nullptr)) ||
           (name == "sequence" && value.is_undefined());
  }

  // --- filters, methods, functions ---

  std::string needed_text(const Expr& expr, const Value& value) const {
    if (const std::string* string = value.text()) return *string;
    bad(expr.line, "'" + expr.text + "' needs a string, not " + std::string(value.kind()));
  }

  std::string capitalized(const std::string& string) {
    std::string out = to_lower(string);
    return out.empty() ? out : to_upper(out.substr(0, 1)) + out.substr(1);
  }

  std::string replaced(const Expr& expr, const std::string& string, const std::string& from,
                       const std::string& to) {
    if (from.empty()) raise(Errc::unsupported, expr.line, "'replace' of an empty string is not supported");
    search(expr.line, string, from);
    std::string out;
    std::size_t at = 0;
    for (std::size_t found; (found = string.find(from, at)) != std::string::npos; at = found + from.size()) {
      work(expr.line, found - at + to.size());  // before it is made: the result can be much larger
      out.append(string, at, found - at).append(to);
    }
    return out.append(string, at);
  }

  void to_json(const Expr& expr, const Value& value, int indent, int level, std::string& out) {
    step(expr.line);
    const auto separate = [&](bool first, int to_level) {
      if (!first) out += indent >= 0 ? "," : ", ";
      if (indent >= 0) out.append(1, '\n').append(static_cast<std::size_t>(indent * to_level), ' ');
    };
    const std::size_t before = out.size();
    if (const std::string* string = value.text()) {
      out += json_string(*string);
    } else if (const List* items = value.list()) {
      out += '[';
      for (std::size_t i = 0; i < items->items.size(); ++i) {
        separate(i == 0, level + 1);
        to_json(expr, items->items[i], indent, level + 1, out);
      }
      if (indent >= 0 && !items->items.empty()) separate(true, level);
      out += ']';
    } else if (const Mapping* mapping = value.mapping()) {
      out += '{';
      for (std::size_t i = 0; i < mapping->items.size(); ++i) {
        separate(i == 0, level + 1);
        out += json_string(mapping->items[i].first) + ": ";
        to_json(expr, mapping->items[i].second, indent, level + 1, out);
      }
      if (indent >= 0 && !mapping->items.empty()) separate(true, level);
      out += '}';
    } else if (std::holds_alternative<None>(value.data())) {
      out += "null";
    } else if (const bool* boolean = value.boolean()) {
      out += *boolean ? "true" : "false";
    } else if (const std::int64_t* number = value.integer()) {
      out += std::to_string(*number);
    } else {
      bad(expr.line, "tojson of " + std::string(value.kind()));
    }
    if (value.depth() == 0) work(expr.line, out.size() - before);
  }

  Value filter(const Expr& expr) {
    const std::string& name = expr.text;
    const Value value = eval(*expr.args[0]);
    if (name == "default" || name == "d") {
      const bool falsy_too = expr.args.size() > 2 && eval(*expr.args[2]).truth();
      return value.is_undefined() || (falsy_too && !value.truth()) ? eval(*expr.args[1]) : value;
    }
    if (name == "safe") return value;
    if (name == "string") return text(expr.line, printed(expr.line, value));
    if (name == "trim") return text(expr.line, std::string(strip(printed(expr.line, value), true, true)));
    if (name == "upper") return text(expr.line, to_upper(printed(expr.line, value)));
    if (name == "lower") return text(expr.line, to_lower(printed(expr.line, value)));
    if (name == "capitalize") return text(expr.line, capitalized(printed(expr.line, value)));
    if (name == "replace") {
      return text(expr.line, replaced(expr, printed(expr.line, value), needed_text(expr, eval(*expr.args[1])),
                                      needed_text(expr, eval(*expr.args[2]))));
    }
    if (name == "tojson") return text(expr.line, json_filter(expr, value));
    if (name == "length" || name == "count") return Value(length(expr, value));
    std::vector<Value> items = elements(expr.line, value);
    if (name == "list") return list(expr.line, std::move(items));
    if (name == "first") return items.empty() ? Value() : items.front();
    if (name == "last") return items.empty() ? Value() : items.back();
    const std::string separator =
        expr.args.size() > 1 ? printed(expr.line, eval(*expr.args[1])) : std::string();
    std::string out;  // join
    for (std::size_t i = 0; i < items.size(); ++i) {
      const std::string item = printed(expr.line, items[i]);
      work(expr.line, item.size() + separator.size());
      if (i > 0) out += separator;
      out += item;
    }
    return text(expr.line, std::move(out));
  }

  std::int64_t length(const Expr& expr, const Value& value) {
    if (value.is_undefined()) return 0;
    if (const std::string* string = value.text()) {
      step(expr.line, string->size() / 64 + 1);
      return static_cast<std::int64_t>(count_code_points(*string));
    }
    if (const List* items = value.list()) return static_cast<std::int64_t>(items->items.size());
    if (const Mapping* items = value.mapping()) return static_cast<std::int64_t>(items->items.size());
    bad(expr.line, std::string(value.kind()) + " has no length");
  }

  std::string json_filter(const Expr& expr, const Value& value) {
    int indent = -1;
    const Expr* argument = expr.args.size() > 1 ? expr.args[1].get() : nullptr;
    if (!expr.named.empty()) argument = expr.named[0].second.get();
    if (argument != nullptr) {
      const Value given = eval(*argument);
      if (given.integer() != nullptr) {
        if (*given.integer() < 0 || *given.integer() > 16)
          bad(expr.line, "tojson's indent is not from 0 to 16");
        indent = static_cast<int>(*given.integer());
      } else if (!std::holds_alternative<None>(given.data())) {
        bad(expr.line, "tojson's indent needs an integer, not " + std::string(given.kind()));
      }
    }
    std::string out;
    to_json(expr, value, indent, 0, out);
    return out;
  }

  Value method(const Expr& expr) {
    const std::string& name = expr.text;
    const Value object = eval(*expr.args[0]);
    std::vector<Value> given;
    for (std::size_t i = 1; i < expr.args.size(); ++i) given.push_back(eval(*expr.args[i]));
    if (object.is_undefined()) bad(expr.line, "'" + name + "' of an undefined value");
    if (name == "items" || name == "keys" || name == "values" || name == "get")
      return mapping_method(expr, object, given);
    const std::string string = needed_text(expr, object);
    if (name == "upper") return text(expr.line, to_upper(string));
    if (name == "lower") return text(expr.line, to_lower(string));
    if (name == "capitalize") return text(expr.line, capitalized(string));
    if (name == "startswith") return Value(string.starts_with(needed_text(expr, given[0])));
    if (name == "endswith") return Value(string.ends_with(needed_text(expr, given[0])));
    if (name == "replace") {
      return text(expr.line,
                  replaced(expr, string, needed_text(expr, given[0]), needed_text(expr, given[1])));
    }
    const bool no_argument = given.empty() || std::holds_alternative<None>(given[0].data());
    if (name == "split") return split(expr, string, given, no_argument);
    const std::string set = no_argument ? std::string() : needed_text(expr, given[0]);
    step(expr.line, (string.size() / 64 + 1) * (set.size() + 1));
    return text(expr.line,
                std::string(strip(string, name != "rstrip", name != "lstrip", no_argument ? nullptr : &set)));
  }

  Value split(const Expr& expr, const std::string& string, const std::vector<Value>& given, bool on_space) {
    std::int64_t most = -1;
    if (given.size() > 1) {
      if (given[1].integer() == nullptr)
        bad(expr.line, "'split' needs an integer, not " + std::string(given[1].kind()));
      most = *given[1].integer();
    }
    std::vector<Value> out;
    const auto add = [&](std::string_view part) {
      work(expr.line, sizeof(Value));
      out.push_back(text(expr.line, std::string(part)));
    };
    const auto may_cut = [&] { return most < 0 || static_cast<std::int64_t>(out.size()) < most; };
    std::string_view rest = string;
    if (on_space) {
      for (rest = strip(rest, true, false); !rest.empty(); rest = strip(rest, true, false)) {
        if (!may_cut()) {
          add(rest);
          break;
        }
        std::size_t length = 0;
        while (length < rest.size()) {
          const std::size_t point = decode_code_point(rest.substr(length)).length;
          if (strip(rest.substr(length, point), true, false).empty()) break;
          length += point;
        }
        add(rest.substr(0, length));
        rest.remove_prefix(length);
      }
      return list(expr.line, std::move(out));
    }
    const std::string separator = needed_text(expr, given[0]);
    if (separator.empty()) bad(expr.line, "'split' by an empty string");
    search(expr.line, string, separator);
    for (std::size_t found; may_cut() && (found = rest.find(separator)) != std::string_view::npos;) {
      add(rest.substr(0, found));
      rest.remove_prefix(found + separator.size());
    }
    add(rest);
    return list(expr.line, std::move(out));
  }

  Value mapping_method(const Expr& expr, const Value& object, const std::vector<Value>& given) {
    const Mapping* mapping = object.mapping();
    if (mapping == nullptr)
      bad(expr.line, "'" + expr.text + "' needs a mapping, not " + std::string(object.kind()));
    if (expr.text == "get") {
      const Value* found = given[0].text() != nullptr ? mapping->find(*given[0].text()) : nullptr;
      step(expr.line, mapping->items.size());
      return found != nullptr ? *found : given.size() > 1 ? given[1] : Value(None{});
    }
    std::vector<Value> out;
    for (const auto& [key, value] : mapping->items) {
      if (expr.text == "values") {
        out.push_back(value);
      } else if (expr.text == "keys") {
        out.push_back(text(expr.line, key));
      } else {
        out.push_back(list(expr.line, {text(expr.line, key), value}));
      }
    }
    return list(expr.line, std::move(out));
  }

  Value function(const Expr& expr) {
    if (expr.text == "namespace") {
      const auto made = std::make_shared<Namespace>();
      for (const auto& [name, value] : expr.named) {
        Value given = eval(*value);
        member_depth(expr.line, given);
        made->items.insert_or_assign(name, std::move(given));
      }
      return Value(made);
    }
    std::vector<Value> given;
    for (const ExprPtr& argument : expr.args) given.push_back(eval(*argument));
    if (expr.text == "raise_exception") bad(expr.line, printed(expr.line, given[0]));
    if (expr.text == "range") return range(expr, given);
    raise(Errc::unsupported, expr.line,
          "'" + expr.text + "' is not supported: a prompt must not depend on the day");
  }

  Value range(const Expr& expr, const std::vector<Value>& given) {
    std::int64_t bounds[3] = {0, 0, 1};
    for (std::size_t i = 0; i < given.size(); ++i) {
      if (given[i].integer() == nullptr)
        bad(expr.line, "'range' needs integers, not " + std::string(given[i].kind()));
      bounds[given.size() == 1 ? 1 : i] = *given[i].integer();
    }
    if (bounds[2] == 0) bad(expr.line, "'range' with a step of 0");
    std::vector<Value> out;
    for (std::int64_t at = bounds[0]; bounds[2] > 0 ? at < bounds[1] : at > bounds[1];) {
      step(expr.line);
      out.emplace_back(at);
      if (__builtin_add_overflow(at, bounds[2], &at)) break;
    }
    return list(expr.line, std::move(out));
  }

  Budget budget_;
  std::vector<Scope> scopes_;
  std::string output_;
};

}  // namespace

std::string evaluate(const std::vector<Node>& nodes, std::map<std::string, Value, std::less<>> globals,
                     const Budget& budget) {
  return Evaluator(std::move(globals), budget).run(nodes);
}

}  // namespace helios::model::jinja
