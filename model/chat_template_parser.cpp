#include "model/chat_template_parser.hpp"

#include <algorithm>
#include <array>
#include <initializer_list>

#include "model/chat_template_lexer.hpp"

namespace helios::model::jinja {
namespace {

constexpr int kMaxTreeDepth = 256;

struct Signature {
  std::string_view name;
  std::size_t least, most;     // positional arguments
  std::string_view keyword{};  // the one keyword argument that is known, if any
};

constexpr Signature kFilters[] = {
    {"trim", 0, 0},    {"length", 0, 0}, {"count", 0, 0},
    {"upper", 0, 0},   {"lower", 0, 0},  {"tojson", 0, 1, "indent"},
    {"default", 1, 2}, {"d", 1, 2},      {"first", 0, 0},
    {"last", 0, 0},    {"join", 0, 1},   {"replace", 2, 2},
    {"string", 0, 0},  {"list", 0, 0},   {"capitalize", 0, 0},
    {"safe", 0, 0},
};
constexpr Signature kMethods[] = {
    {"strip", 0, 1},      {"lstrip", 0, 1}, {"rstrip", 0, 1}, {"startswith", 1, 1}, {"endswith", 1, 1},
    {"split", 0, 2},      {"upper", 0, 0},  {"lower", 0, 0},  {"replace", 2, 2},    {"items", 0, 0},
    {"capitalize", 0, 0}, {"keys", 0, 0},   {"values", 0, 0}, {"get", 1, 2},
};
// strftime_now is undefined here ("is defined" is false): a prompt must not depend on the day.
constexpr Signature kFunctions[] = {
    {"raise_exception", 1, 1}, {"namespace", 0, 0}, {"range", 1, 3}, {"strftime_now", 1, 1}};
constexpr std::array<std::string_view, 13> kTests = {"defined",  "undefined", "none",    "string", "number",
                                                     "integer",  "boolean",   "true",    "false",  "mapping",
                                                     "iterable", "sequence",  "callable"};
constexpr std::array<std::string_view, 12> kReserved = {"and",  "or",   "not", "in",   "is",    "if",
                                                        "else", "elif", "for", "true", "false", "none"};

template <std::size_t size>
const Signature* find_signature(const Signature (&table)[size], std::string_view name) {
  const auto* found =
      std::find_if(std::begin(table), std::end(table), [&](const Signature& s) { return s.name == name; });
  return found == std::end(table) ? nullptr : found;
}

class Parser {
 public:
  Parser(std::vector<Token> tokens, int nesting) : tokens_(std::move(tokens)), nesting_(nesting) {}

  std::vector<Node> run() {
    std::vector<Node> nodes = body({});
    return nodes;
  }

 private:
  using Kind = Token::Kind;

  // Counts the recursion that it lives through.
  class Nested {
   public:
    explicit Nested(Parser& parser) : parser_(parser) {
      if (++parser_.depth_ > parser_.nesting_) {
        raise(Errc::unsupported, parser_.line(),
              "nested more than " + std::to_string(parser_.nesting_) + " deep");
      }
    }
    ~Nested() { --parser_.depth_; }
    Nested(const Nested&) = delete;
    Nested& operator=(const Nested&) = delete;

   private:
    Parser& parser_;
  };

  const Token& now() const { return tokens_[at_]; }
  const Token& ahead() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }
  int line() const { return now().line; }
  Token take() { return at_ + 1 < tokens_.size() ? tokens_[at_++] : tokens_[at_]; }
  bool is_op(std::string_view op) const { return now().kind == Kind::op && now().text == op; }
  bool is_name(std::string_view name) const { return now().kind == Kind::name && now().text == name; }
  bool take_op(std::string_view op) {
    if (!is_op(op)) return false;
    take();
    return true;
  }
  bool take_name(std::string_view name) {
    if (!is_name(name)) return false;
    take();
    return true;
  }

  [[noreturn]] void unexpected(const std::string& wanted) const {
    const std::string shown = now().kind == Kind::end         ? "the end"
                              : now().kind == Kind::text      ? "text"
                              : now().kind == Kind::block_end ? "'%}'"
                              : now().kind == Kind::print_end ? "'}}'"
                                                              : "'" + now().text.substr(0, 40) + "'";
    raise(Errc::bad_file, line(), wanted + " is expected before " + shown);
  }
  [[noreturn]] void unsupported(int at_line, const std::string& what) const {
    raise(Errc::unsupported, at_line, what + " is not supported");
  }
  void expect_op(std::string_view op) {
    if (!take_op(op)) unexpected("'" + std::string(op) + "'");
  }
  void expect(Kind kind, const char* shown) {
    if (now().kind != kind) unexpected(shown);
    take();
  }
  std::string identifier() {
    if (now().kind != Kind::name) unexpected("a name");
    if (std::find(kReserved.begin(), kReserved.end(), now().text) != kReserved.end()) unexpected("a name");
    return take().text;
  }

  // --- statements ---

  // Nodes until one of the given tags, whose name is left as the current token; empty list: until the end.
  std::vector<Node> body(std::initializer_list<std::string_view> closers) {
    const Nested nested(*this);
    const int opened = line();
    std::vector<Node> nodes;
    while (true) {
      if (now().kind == Kind::end) {
        if (closers.size() != 0) {
          raise(Errc::bad_file, opened,
                "a block is not closed: '" + std::string(*(closers.end() - 1)) + "' is missing");
        }
        return nodes;
      }
      if (now().kind == Kind::text) {
        Node& node = nodes.emplace_back();
        node.line = line();
        node.text = take().text;
        continue;
      }
      if (now().kind == Kind::print_begin) {
        Node& node = nodes.emplace_back();
        node.kind = Node::Kind::print;
        node.line = line();
        take();
        node.value = expression();
        expect(Kind::print_end, "'}}'");
        continue;
      }
      expect(Kind::block_begin, "'{%'");
      if (now().kind != Kind::name) unexpected("a statement");
      if (std::find(closers.begin(), closers.end(), now().text) != closers.end()) return nodes;
      nodes.push_back(statement());
    }
  }

  Node statement() {
    const Token keyword = take();
    Node node;
    node.line = keyword.line;
    if (keyword.text == "if") {
      branch(node);
    } else if (keyword.text == "for") {
      loop(node);
    } else if (keyword.text == "set") {
      set(node);
    } else if (keyword.text == "break" || keyword.text == "continue") {
      if (loops_ == 0) raise(Errc::bad_file, node.line, "'" + keyword.text + "' outside of a loop");
      node.kind = keyword.text == "break" ? Node::Kind::stop_loop : Node::Kind::next_turn;
      expect(Kind::block_end, "'%}'");
    } else if (keyword.text.starts_with("end") || keyword.text.starts_with("el")) {
      raise(Errc::bad_file, node.line, "'" + keyword.text.substr(0, 40) + "' closes nothing");
    } else {
      unsupported(node.line, "the statement '" + keyword.text.substr(0, 40) + "'");
    }
    return node;
  }

  void branch(Node& node) {
    node.kind = Node::Kind::branch;
    ExprPtr condition = expression();
    expect(Kind::block_end, "'%}'");
    while (true) {
      std::vector<Node> nodes = condition != nullptr ? body({"elif", "else", "endif"}) : body({"endif"});
      const bool last = condition == nullptr;
      node.arms.push_back({std::move(condition), std::move(nodes)});
      const std::string keyword = take().text;
      if (keyword == "elif" && !last) {
        condition = expression();
      } else if (keyword == "else" && !last) {
        condition = nullptr;
      } else {
        expect(Kind::block_end, "'%}'");
        return;
      }
      expect(Kind::block_end, "'%}'");
    }
  }

  void loop(Node& node) {
    node.kind = Node::Kind::loop;
    node.targets.push_back(identifier());
    if (take_op(",")) node.targets.push_back(identifier());
    if (is_op(",")) unsupported(line(), "a loop over more than two names");
    if (!take_name("in")) unexpected("'in'");
    node.value = logical_or();  // an `if` here filters
    if (take_name("if")) node.condition = expression();
    if (is_name("recursive")) unsupported(line(), "'recursive'");
    expect(Kind::block_end, "'%}'");
    ++loops_;
    node.body = body({"else", "endfor"});
    --loops_;
    if (take().text == "else") {
      expect(Kind::block_end, "'%}'");
      node.otherwise = body({"endfor"});
      take();
    }
    expect(Kind::block_end, "'%}'");
  }

  void set(Node& node) {
    node.kind = Node::Kind::set;
    node.targets.push_back(identifier());
    if (take_op(".")) {
      node.kind = Node::Kind::set_attribute;
      node.text = identifier();
    }
    if (is_op(",")) unsupported(line(), "'set' of several names");
    if (now().kind == Kind::block_end || is_op("|")) unsupported(line(), "'set' with a block");
    expect_op("=");
    node.value = expression();
    expect(Kind::block_end, "'%}'");
  }

  // --- expressions, loosest first ---

  template <class... Args>
  ExprPtr make(Op op, int at_line, Args... args) {
    auto expr = std::make_unique<Expr>();
    expr->op = op;
    expr->line = at_line;
    (add_argument(*expr, std::move(args)), ...);
    return expr;
  }

  void note_depth(Expr& expr, const Expr* child) {
    if (child == nullptr) return;
    expr.depth = std::max(expr.depth, child->depth + 1);
    if (expr.depth > kMaxTreeDepth) {
      raise(Errc::unsupported, expr.line,
            "an expression of more than " + std::to_string(kMaxTreeDepth) + " steps in a row");
    }
  }
  void add_argument(Expr& expr, ExprPtr child) {
    note_depth(expr, child.get());
    expr.args.push_back(std::move(child));
  }

  ExprPtr expression() {
    const Nested nested(*this);
    ExprPtr value = logical_or();
    while (is_name("if")) {
      const int at_line = take().line;
      ExprPtr condition = logical_or();
      ExprPtr other = take_name("else") ? expression() : nullptr;
      value = make(Op::conditional, at_line, std::move(value), std::move(condition), std::move(other));
    }
    return value;
  }

  ExprPtr logical_or() {
    ExprPtr left = logical_and();
    while (is_name("or")) {
      const int at_line = take().line;
      left = make(Op::logical_or, at_line, std::move(left), logical_and());
    }
    return left;
  }

  ExprPtr logical_and() {
    ExprPtr left = logical_not();
    while (is_name("and")) {
      const int at_line = take().line;
      left = make(Op::logical_and, at_line, std::move(left), logical_not());
    }
    return left;
  }

  ExprPtr logical_not() {
    if (!is_name("not")) return comparison();
    const Nested nested(*this);
    const int at_line = take().line;
    return make(Op::logical_not, at_line, logical_not());
  }

  bool comparison_operator(Op& op) {
    constexpr std::pair<std::string_view, Op> kOperators[] = {{"==", Op::equal},  {"!=", Op::not_equal},
                                                              {"<", Op::less},    {"<=", Op::less_equal},
                                                              {">", Op::greater}, {">=", Op::greater_equal}};
    for (const auto& [text, known] : kOperators) {
      if (!take_op(text)) continue;
      op = known;
      return true;
    }
    if (take_name("in")) {
      op = Op::in;
      return true;
    }
    if (is_name("not") && ahead().kind == Kind::name && ahead().text == "in") {
      take();
      take();
      op = Op::not_in;
      return true;
    }
    return false;
  }

  ExprPtr comparison() {
    ExprPtr left = sum();
    const int at_line = line();
    Op op{};
    if (!comparison_operator(op)) return left;
    left = make(op, at_line, std::move(left), sum());
    const int next_line = line();
    if (comparison_operator(op)) unsupported(next_line, "a chain of comparisons");
    return left;
  }

  ExprPtr sum() {
    ExprPtr left = concatenation();
    while (is_op("+") || is_op("-")) {
      const Token op = take();
      left = make(op.text == "+" ? Op::add : Op::subtract, op.line, std::move(left), concatenation());
    }
    return left;
  }

  ExprPtr concatenation() {
    ExprPtr left = product();
    while (is_op("~")) {
      const int at_line = take().line;
      left = make(Op::concatenate, at_line, std::move(left), product());
    }
    return left;
  }

  ExprPtr product() {
    ExprPtr left = unary(true);
    while (true) {
      if (is_op("/") || is_op("**")) unsupported(line(), "the operator '" + now().text + "'");
      if (!is_op("*") && !is_op("//") && !is_op("%")) return left;
      const Token op = take();
      const Op kind = op.text == "*" ? Op::multiply : op.text == "%" ? Op::modulo : Op::floor_divide;
      left = make(kind, op.line, std::move(left), unary(true));
    }
  }

  ExprPtr unary(bool with_filters) {
    ExprPtr value;
    if (is_op("-") || is_op("+")) {
      const Nested nested(*this);
      const Token op = take();
      value = unary(false);
      if (op.text == "-") value = make(Op::negate, op.line, std::move(value));
    } else {
      value = postfix(primary());
    }
    return with_filters ? filters_and_tests(std::move(value)) : std::move(value);
  }

  ExprPtr primary() {
    const Token token = now();
    if (token.kind == Kind::string) {
      ExprPtr value = make(Op::string, token.line);
      while (now().kind == Kind::string)
        value->text += take().text;  // neighbours are one string, as in Python
      return value;
    }
    if (token.kind == Kind::integer) {
      take();
      ExprPtr value = make(Op::integer, token.line);
      value->integer = token.integer;
      return value;
    }
    if (token.kind == Kind::name) return name();
    if (take_op("(")) {
      const Nested nested(*this);
      ExprPtr value = expression();
      if (is_op(",")) unsupported(line(), "a tuple");
      expect_op(")");
      return value;
    }
    if (is_op("[")) return list();
    if (is_op("{")) return mapping();
    unexpected("a value");
  }

  ExprPtr name() {
    const std::string& text = now().text;
    const int at_line = line();
    if (text == "true" || text == "True" || text == "false" || text == "False") {
      ExprPtr value = make(Op::boolean, at_line);
      value->flag = text[0] == 't' || text[0] == 'T';
      take();
      return value;
    }
    if (text == "none" || text == "None") {
      take();
      return make(Op::none, at_line);
    }
    std::string variable = identifier();
    if (!is_op("(")) {
      ExprPtr value = make(Op::variable, at_line);
      value->text = std::move(variable);
      return value;
    }
    const Signature* known = find_signature(kFunctions, variable);
    if (known == nullptr) unsupported(at_line, "the function '" + variable.substr(0, 40) + "'");
    ExprPtr call = make(Op::function, at_line);
    call->text = variable;
    arguments(*call, *known, "function", variable == "namespace");
    return call;
  }

  ExprPtr list() {
    const Nested nested(*this);
    ExprPtr value = make(Op::list, take().line);
    while (!take_op("]")) {
      add_argument(*value, expression());
      if (!is_op("]")) expect_op(",");
    }
    return value;
  }

  ExprPtr mapping() {
    const Nested nested(*this);
    ExprPtr value = make(Op::mapping, take().line);
    while (!take_op("}")) {
      add_argument(*value, expression());
      expect_op(":");
      add_argument(*value, expression());
      if (!is_op("}")) expect_op(",");
    }
    return value;
  }

  ExprPtr postfix(ExprPtr value) {
    while (true) {
      if (take_op(".")) {
        const int at_line = line();
        if (now().kind != Kind::name) unexpected("the name of an attribute");
        std::string attribute = take().text;
        const Signature* known = is_op("(") ? find_signature(kMethods, attribute) : nullptr;
        if (is_op("(") && known == nullptr)
          unsupported(at_line, "the method '" + attribute.substr(0, 40) + "'");
        value = make(known != nullptr ? Op::method : Op::attribute, at_line, std::move(value));
        value->text = attribute;
        if (known != nullptr) arguments(*value, *known, "method", false);
      } else if (is_op("[")) {
        value = subscript(std::move(value));
      } else if (is_op("(")) {
        unsupported(line(), "a call of a value");
      } else {
        return value;
      }
    }
  }

  ExprPtr subscript(ExprPtr object) {
    const Nested nested(*this);
    const int at_line = take().line;
    ExprPtr parts[3];
    int count = 0;
    bool sliced = false;
    while (!is_op("]")) {
      if (take_op(":")) {
        sliced = true;
        if (++count > 2) unexpected("']'");
        continue;
      }
      if (parts[count] != nullptr) unexpected("']'");
      parts[count] = expression();
      if (is_op(",")) unsupported(line(), "a tuple");
    }
    expect_op("]");
    if (sliced) {
      return make(Op::slice, at_line, std::move(object), std::move(parts[0]), std::move(parts[1]),
                  std::move(parts[2]));
    }
    if (parts[0] == nullptr) raise(Errc::bad_file, at_line, "an index is expected in '[]'");
    return make(Op::index, at_line, std::move(object), std::move(parts[0]));
  }

  ExprPtr filters_and_tests(ExprPtr value) {
    while (true) {
      if (take_op("|")) {
        const int at_line = line();
        const std::string filter = identifier();
        const Signature* known = find_signature(kFilters, filter);
        if (known == nullptr) unsupported(at_line, "the filter '" + filter.substr(0, 40) + "'");
        value = make(Op::filter, at_line, std::move(value));
        value->text = filter;
        if (is_op("(")) {
          arguments(*value, *known, "filter", false);
        } else if (known->least > 0) {
          raise(Errc::bad_file, at_line, "the filter '" + filter + "' needs an argument");
        }
      } else if (take_name("is")) {
        const int at_line = line();
        const bool negated = take_name("not");
        if (now().kind != Kind::name) unexpected("the name of a test");
        const std::string test = take().text;
        if (std::find(kTests.begin(), kTests.end(), test) == kTests.end()) {
          unsupported(at_line, "the test '" + test.substr(0, 40) + "'");
        }
        if (is_op("(")) unsupported(at_line, "an argument of the test '" + test + "'");
        value = make(Op::test, at_line, std::move(value));
        value->text = test;
        value->flag = negated;
      } else if (is_op("(")) {
        unsupported(line(), "a call of a value");
      } else {
        return value;
      }
    }
  }

  void arguments(Expr& call, const Signature& known, const char* kind, bool any_keyword) {
    const Nested nested(*this);
    expect_op("(");
    std::size_t count = 0;
    while (!take_op(")")) {
      if (now().kind == Kind::name && ahead().kind == Kind::op && ahead().text == "=") {
        const int at_line = line();
        std::string keyword = identifier();
        take();
        if (!any_keyword && keyword != known.keyword) {
          unsupported(at_line,
                      "the argument '" + keyword.substr(0, 40) + "' of the " + kind + " '" + call.text + "'");
        }
        ExprPtr value = expression();
        note_depth(call, value.get());
        call.named.emplace_back(std::move(keyword), std::move(value));
      } else {
        if (!call.named.empty()) raise(Errc::bad_file, line(), "an argument follows one with a name");
        add_argument(call, expression());
        ++count;
      }
      if (!is_op(")")) expect_op(",");
    }
    if (count < known.least || count > known.most) {
      raise(Errc::unsupported, call.line,
            "the " + std::string(kind) + " '" + call.text + "' with " + std::to_string(count) +
                " arguments is not supported");
    }
  }

  std::vector<Token> tokens_;
  std::size_t at_ = 0;
  int nesting_;
  int depth_ = 0;
  int loops_ = 0;
};

}  // namespace

std::vector<Node> parse(std::string_view source, int nesting) {
  return Parser(tokenize(source), nesting).run();
}

}  // namespace helios::model::jinja
