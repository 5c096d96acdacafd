#include "model/chat_template.hpp"

#include <boost/json.hpp>
#include <catch2/catch_test_macros.hpp>
#include <fstream>
#include <sstream>

using namespace helios;
using model::ChatMessage;
using model::ChatTemplate;
using model::ChatTemplateLimits;

namespace {

const std::vector<ChatMessage> kHello = {{"user", "Hello"}};

std::string text_of(const boost::json::value& value) {
  return {value.as_string().begin(), value.as_string().end()};
}

Error parse_error(std::string_view source) {
  const auto parsed = ChatTemplate::parse(source);
  REQUIRE(!parsed);
  return parsed.error();
}

Result<std::string> render(std::string_view source, const ChatTemplateLimits& limits = {}) {
  const auto parsed = ChatTemplate::parse(source, limits);
  if (!parsed) return parsed.error();
  return parsed->render(kHello, true, "<s>", "</s>");
}

}  // namespace

TEST_CASE("ChatTemplate: the same text as jinja2 on every stored case", "[model]") {
  std::ifstream file(HELIOS_TEST_DATA "/chat_template/cases.json");
  std::stringstream whole;
  whole << file.rdbuf();
  const boost::json::value cases = boost::json::parse(whole.str());
  REQUIRE(cases.as_array().size() > 80);
  for (const auto& entry : cases.as_array()) {
    const boost::json::object& one = entry.as_object();
    INFO(text_of(one.at("name")));
    const auto parsed = ChatTemplate::parse(text_of(one.at("template")));
    if (!parsed) FAIL(parsed.error().message);
    std::vector<ChatMessage> messages;
    for (const auto& message : one.at("messages").as_array()) {
      messages.push_back(
          {text_of(message.as_object().at("role")), text_of(message.as_object().at("content"))});
    }
    const auto rendered = parsed->render(messages, one.at("add_generation_prompt").as_bool(), "<s>", "</s>");
    if (one.contains("error")) {
      REQUIRE(!rendered);
      CHECK(rendered.error().code == Errc::bad_request);
    } else {
      if (!rendered) FAIL(rendered.error().message);
      CHECK(*rendered == text_of(one.at("output")));
    }
  }
}

TEST_CASE("ChatTemplate: what we do not have is refused when it is parsed, by name and line", "[model]") {
  const std::pair<const char*, const char*> cases[] = {
      {"\n{% macro f() %}{% endmacro %}", "the statement 'macro'"},
      {"\n{% include 'x' %}", "the statement 'include'"},
      {"\n{% generation %}", "the statement 'generation'"},
      {"\n{% set x %}a{% endset %}", "'set' with a block"},
      {"\n{% for a in b recursive %}{% endfor %}", "'recursive'"},
      {"\n{{ x | pprint }}", "the filter 'pprint'"},
      {"\n{{ x | map('upper') }}", "the filter 'map'"},
      {"\n{{ x is divisibleby(3) }}", "the test 'divisibleby'"},
      {"\n{{ lipsum() }}", "the function 'lipsum'"},
      {"\n{{ x.__class__() }}", "the method '__class__'"},
      {"\n{{ x.append(1) }}", "the method 'append'"},
      {"\n{{ x[0](1) }}", "a call of a value"},
      {"\n{{ 1 / 2 }}", "the operator '/'"},
      {"\n{{ 2 ** 3 }}", "the operator '**'"},
      {"\n{{ 1.5 }}", "a number with a point"},
      {"\n{{ (1, 2) }}", "a tuple"},
      {"\n{{ 1 < 2 < 3 }}", "a chain of comparisons"},
      {"\n{{ x | tojson(sort_keys=true) }}", "the argument 'sort_keys'"},
  };
  for (const auto& [source, what] : cases) {
    INFO(source);
    const Error error = parse_error(source);
    CHECK(error.code == Errc::unsupported);
    CHECK(error.message.find(what) != std::string::npos);
    CHECK(error.message.find("line 2") != std::string::npos);
    CHECK(error.message.find("not supported") != std::string::npos);
  }
}

TEST_CASE("ChatTemplate: syntax errors say where", "[model]") {
  for (const char* source : {"{% if x %}",
                             "{{ x ",
                             "{# x",
                             "{% endfor %}",
                             "{% for x %}{% endfor %}",
                             "{{ }}",
                             "{{ 'x }}",
                             "{{ x[ }}",
                             "{{ ) }}",
                             "{% else %}",
                             "{{ x | }}",
                             "{% break %}",
                             "{{ a b }}",
                             "{% if x %}{% else %}{% else %}{% endif %}",
                             "{{ x[1:2:3:4] }}",
                             "{{ f(a=1, 2) }}",
                             "{% set not = 1 %}",
                             "{{ 99999999999999999999 }}",
                             "{{ \x01 }}",
                             "{{ '\\ud800' }}",
                             "{% %}"}) {
    INFO(source);
    const Error error = parse_error(source);
    CHECK((error.code == Errc::bad_file || error.code == Errc::unsupported));
    CHECK(error.message.find("line 1") != std::string::npos);
  }
}

TEST_CASE("ChatTemplate: a template cannot run, write, or nest without bound", "[model]") {
  const char* loop = "{% for a in range(3000) %}{% for b in range(3000) %}{% endfor %}{% endfor %}";
  CHECK(render(loop).error().code == Errc::too_long);
  CHECK(render("{% for a in range(1000000000) %}{% endfor %}").error().code == Errc::too_long);
  CHECK(render("{% set ns = namespace(s='xxxxxxxx') %}{% for a in range(60) %}{% set ns.s = ns.s + ns.s %}{% "
               "endfor %}")
            .error()
            .code == Errc::too_long);
  CHECK(render("{% set ns = namespace(s=[1]) %}{% for a in range(200) %}{% set ns.s = [ns.s] %}{% endfor %}")
            .error()
            .code == Errc::too_long);
  CHECK(render("{% set ns = namespace(s=[1]) %}{% for a in range(60) %}{% set ns.s = [ns.s, ns.s] %}{% "
               "endfor %}{{ ns.s == "
               "ns.s }}")
            .error()
            .code == Errc::too_long);
  ChatTemplateLimits small;
  small.output_bytes = 10;
  CHECK(render("123456789", small).value() == "123456789");
  CHECK(render("12345678901", small).error().code == Errc::too_long);
  small.template_bytes = 4;
  CHECK(render("12345", small).error().code == Errc::too_long);
  const std::string open(5000, '(');
  const std::string closed(5000, ')');
  CHECK(parse_error("{{ " + open + "1" + closed + " }}").code == Errc::unsupported);
  std::string nots;
  std::string sums = "1";
  std::string blocks;
  for (int i = 0; i < 5000; ++i) {
    nots += "not ";
    sums += " + 1";
    blocks += "{% if true %}";
  }
  CHECK(parse_error("{{ " + nots + "x }}").code == Errc::unsupported);
  CHECK(parse_error("{{ " + sums + " }}").code == Errc::unsupported);
  CHECK(parse_error(blocks).code == Errc::unsupported);
}

TEST_CASE("ChatTemplate: a namespace cannot come to hold itself", "[model]") {
  CHECK(render("{% set a = namespace(x=1) %}{% set a.x = a %}").error().code == Errc::unsupported);
  CHECK(render("{% set a = namespace(x=1) %}{% set a.x = [a] %}").error().code == Errc::unsupported);
  CHECK(render("{% set a = namespace(x=1) %}{% set b = namespace(y=a) %}").error().code == Errc::unsupported);
}

TEST_CASE("ChatTemplate: the template's own exception reaches the caller", "[model]") {
  const auto rendered = render("{{ raise_exception('only user turns') }}");
  REQUIRE(!rendered);
  CHECK(rendered.error().code == Errc::bad_request);
  CHECK(rendered.error().message.find("only user turns") != std::string::npos);
  CHECK(render("{{ strftime_now is defined }}").value() == "False");
  CHECK(render("{{ strftime_now('%d') }}").error().code == Errc::unsupported);
}
