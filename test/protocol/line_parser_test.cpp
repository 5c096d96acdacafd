#include "protocol/line_parser.hpp"

#include <catch2/catch_test_macros.hpp>
#include <random>

using namespace helios::protocol;

namespace {

/// All events of `bytes` fed in the pieces that end at `cuts`, then end of input.
std::vector<ParserEvent> feed_pieces(std::string_view bytes, const std::vector<std::size_t>& cuts,
                                     ParserLimits limits = {}) {
  LineParser parser(limits);
  std::vector<ParserEvent> events;
  std::size_t begin = 0;
  const auto piece = [&](std::size_t end) {
    std::string_view input = bytes.substr(begin, end - begin);
    while (std::optional<ParserEvent> event = parser.next(input)) events.push_back(std::move(*event));
    CHECK(input.empty());
    CHECK(parser.buffered_bytes() <= limits.line_bytes + limits.payload_bytes);
    begin = end;
  };
  for (const std::size_t cut : cuts) piece(cut);
  piece(bytes.size());
  if (std::optional<ParserEvent> event = parser.finish()) events.push_back(std::move(*event));
  return events;
}

std::vector<ParserEvent> feed(std::string_view bytes, ParserLimits limits = {}) {
  return feed_pieces(bytes, {}, limits);
}

const Line& line(const std::vector<ParserEvent>& events, std::size_t index = 0) {
  REQUIRE(events.size() > index);
  REQUIRE(std::holds_alternative<Line>(events[index]));
  return std::get<Line>(events[index]);
}

const Fault& fault(const std::vector<ParserEvent>& events, std::size_t index = 0) {
  REQUIRE(events.size() > index);
  REQUIRE(std::holds_alternative<Fault>(events[index]));
  return std::get<Fault>(events[index]);
}

}  // namespace

TEST_CASE("LineParser: a counted GEN carries any bytes in its payload", "[protocol]") {
  const std::string payload("two\nlines\r\n\0and END t1", 22);
  for (const std::string end : {"\n", "\r\n"}) {
    const auto events =
        feed("GEN t1 22 mode=chat max_tokens=16 temperature=0" + end + payload + end + "PING" + end);
    CHECK(line(events).verb == "GEN");
    CHECK(line(events).words == std::vector<std::string>{"t1"});
    CHECK(line(events).options ==
          std::vector<Option>{{"mode", "chat"}, {"max_tokens", "16"}, {"temperature", "0"}});
    CHECK(line(events).text == payload);
    CHECK(line(events, 1).verb == "PING");
    CHECK(events.size() == 2);
  }
}

TEST_CASE("LineParser: a quoted GEN is one line", "[protocol]") {
  const auto events = feed(R"(gen t1 "say \"hi\"\n\x41\\ HTTP/1.1" stop="a b" stop=\n\s)"
                           "\n");
  CHECK(line(events).verb == "GEN");
  CHECK(line(events).text == "say \"hi\"\nA\\ HTTP/1.1");
  CHECK(line(events).options == std::vector<Option>{{"stop", "a b"}, {"stop", "\n "}});
  CHECK(line(feed("GEN t1 \"\"\n")).text == "");
  CHECK(line(feed("GEN t1 \"what is HTTP/1.1\"\n")).text == "what is HTTP/1.1");
}

TEST_CASE("LineParser: AUTH and PING take the rest of the line raw", "[protocol]") {
  CHECK(line(feed("AUTH  k=\"x y\\  \r\n")).words == std::vector<std::string>{"k=\"x y\\"});
  CHECK(line(feed("ping\n")).words.empty());
  CHECK(line(feed("PING 12 = 7\n")).words == std::vector<std::string>{"12 = 7"});
}

TEST_CASE("LineParser: blank lines between commands are nothing; the last line end may be missing",
          "[protocol]") {
  const auto events = feed("\r\n\n  \t\nPING a\n\nSTATS");
  CHECK(events.size() == 2);
  CHECK(line(events, 1).verb == "STATS");
  CHECK(line(feed("GEN t 5\nhello")).text == "hello");
  CHECK(line(feed("GEN t 0\n")).text == "");
  CHECK(fault(feed("GEN t 6\nhello")).kind == Fault::Kind::bad_frame);
}

TEST_CASE("LineParser: a line that does not parse leaves the next one intact", "[protocol]") {
  const std::vector<std::string> bad = {
      std::string("\x01\x02garbage\xff"),  // control bytes
      "LOAD t1 layer=\\q",                 // unknown escape
      "LOAD t1 layer=\"3",                 // open quote
      "LOAD \"t1\"",                       // a quoted text where none belongs
      "LOAD t1 a=\"b\"c",                  // no blank after the quote
      "GEN t1 \"open",
      "GEN t1 \"a\" \"b\"",
      "GEN t1 \"a\" extra",
      "GEN t1 \"a\\",
  };
  for (const std::string& text : bad) {
    INFO(text);
    const auto events = feed(text + "\nPING\n");
    CHECK(fault(events).kind == Fault::Kind::bad_line);
    CHECK_FALSE(fault(events).fatal);
    CHECK_FALSE(fault(events).message.empty());
    CHECK(line(events, 1).verb == "PING");
  }
}

TEST_CASE("LineParser: a counted frame that does not parse is fatal", "[protocol]") {
  for (const std::string text :
       {"GEN", "GEN t1", "GEN t1 x", "GEN t1 -2", "GEN t1 +2", "GEN t1 0x10", "GEN t1 2 3",
        "GEN t1 9999999999999", "GEN t1 5 stop=\"a", "GEN t1 5 \"text\"", "GEN t1 5\x01", "GEN t1 5\nhelloXX",
        "GEN t1 5\nhello\rX", "GEN t1 3\nhello"}) {
    INFO(text);
    const auto events = feed(text + "\nPING\n");
    CHECK(fault(events).kind == Fault::Kind::bad_frame);
    CHECK(fault(events).fatal);
    CHECK(events.size() == 1);  // silent after it
  }
}

TEST_CASE("LineParser: every limit is enforced before bytes are stored", "[protocol]") {
  const ParserLimits limits{.line_bytes = 32, .payload_bytes = 10, .words = 4};
  SECTION("line") {
    CHECK(line(feed("PING " + std::string(27, 'x') + "\n", limits)).words[0].size() == 27);
    const auto events = feed("PING " + std::string(28, 'x') + "\n", limits);
    CHECK(fault(events).kind == Fault::Kind::line_too_long);
    CHECK(fault(events).fatal);
    LineParser parser(limits);
    std::string_view endless = "a line that has no end at all, ever and ever";
    CHECK(parser.next(endless).has_value());  // found before a newline is seen
    CHECK(parser.buffered_bytes() == 0);
  }
  SECTION("payload") {
    CHECK(line(feed("GEN t 10\n0123456789\n", limits)).text == "0123456789");
    const auto events = feed("GEN t 11\n", limits);
    CHECK(fault(events).kind == Fault::Kind::payload_too_long);
    CHECK(fault(events).fatal);
  }
  SECTION("words") {
    CHECK(line(feed("LOAD a b c=1 d=2\n", limits)).options.size() == 2);
    CHECK(fault(feed("LOAD a b c=1 d=2 e=3\n", limits)).kind == Fault::Kind::bad_line);
  }
  SECTION("payloads before AUTH") {
    LineParser parser(limits);
    parser.allow_payloads(false);
    std::string_view input = "GEN t 4\nabcd\n";
    const std::optional<ParserEvent> event = parser.next(input);
    REQUIRE(event);
    CHECK(std::get<Fault>(*event).kind == Fault::Kind::payload_refused);
  }
}

TEST_CASE("LineParser: HTTP and TLS are cut off, not understood", "[protocol]") {
  for (const std::string text :
       {"GET / HTTP/1.1\r\n", "POST /v1/chat HTTP/1.1\r\n", "get /\n", "BREW /pot HTTP/1.1\r\n",
        "Host: localhost\r\n", "PING\r\nHost: x\r\n", "PING\nPOST / HTTP/1.1\r\n", "\x16\x03\x01\x02"}) {
    INFO(text);
    const auto events = feed(text);
    CHECK(fault(events, events.size() - 1).kind == Fault::Kind::foreign);
    CHECK(fault(events, events.size() - 1).fatal);
  }
}

TEST_CASE("LineParser: the same bytes split anywhere give the same events", "[protocol]") {
  const std::string good =
      "GEN t1 22 mode=chat\r\nTell me about the sea.\r\nPING x y\n\nGEN t2 \"a\\nb\" seed=1\nNOPE\n"
      "LOAD t3 layer=\\q\nGEN t4 0\n\nSTATS s\nQUIT";
  for (std::size_t cut = 0; cut <= good.size(); ++cut) CHECK(feed_pieces(good, {cut}) == feed(good));
  std::mt19937 random(7);
  const std::string alphabet = "GEN t1 5\r\n\"\\x=PING\x16\0abc 1";
  for (int round = 0; round < 3000; ++round) {
    std::string bytes = round % 2 == 0 ? good : std::string();
    const std::size_t changes = 1 + random() % 40;
    for (std::size_t i = 0; i < changes; ++i) {
      const char c = random() % 4 == 0 ? static_cast<char>(random()) : alphabet[random() % alphabet.size()];
      bytes.insert(bytes.begin() + static_cast<std::ptrdiff_t>(random() % (bytes.size() + 1)), c);
    }
    std::vector<std::size_t> cuts(random() % 6);
    for (std::size_t& cut : cuts) cut = random() % (bytes.size() + 1);
    std::sort(cuts.begin(), cuts.end());
    const ParserLimits limits{.line_bytes = 64, .payload_bytes = 32, .words = 6};
    CHECK(feed_pieces(bytes, cuts, limits) == feed(bytes, limits));
  }
}

TEST_CASE("is_tag, is_utf8, unescape: their edges", "[protocol]") {
  CHECK(is_tag("aZ0_.-"));
  CHECK(is_tag(std::string(64, 'x')));
  CHECK_FALSE(is_tag(std::string(65, 'x')));
  for (const std::string_view bad : {"", "a b", "a=b", "\xc3\xa9", "a/b"}) CHECK_FALSE(is_tag(bad));
  for (const std::string_view good :
       {"", "abc", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80", "\xf4\x8f\xbf\xbf"}) {
    CHECK(is_utf8(good));
  }
  for (const std::string_view bad :
       {"\x80", "\xc3", "\xc0\xaf", "\xe0\x80\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80",
        "\xf8\x88\x80\x80\x80", "a\xe2\x82", "\xf0\x80\x80\xaf"}) {
    CHECK_FALSE(is_utf8(bad));
  }
  CHECK(unescape("plain") == "plain");
  CHECK(unescape(R"(\n\r\t\s\\\"\x00\xfF)") == std::string("\n\r\t \\\"\0\xff", 8));
  for (const std::string_view bad : {"\\", "\\q", "\\x", "\\x1", "\\xg0"}) CHECK_FALSE(unescape(bad));
}
