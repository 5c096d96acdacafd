#include "protocol/reply_writer.hpp"

#include <catch2/catch_test_macros.hpp>
#include <map>

using namespace helios;
using namespace helios::protocol;

TEST_CASE("ReplyWriter: the spellings scripts rely on", "[protocol]") {
  ReplyWriter writer;
  writer.open("t1");
  writer.token("t1", "The sea ");
  writer.end("t1", "length prompt=31 completion=16 depth=30.0 exits=30:16 ttft_ms=41 tok_s=198");
  CHECK(writer.take(1 << 20) ==
        "ACK t1\r\nTOK t1 1 8\r\nThe sea \r\nEND t1 length prompt=31 completion=16 depth=30.0 exits=30:16 "
        "ttft_ms=41 "
        "tok_s=198\r\n");
  writer.info("{}");
  writer.pong("");
  writer.pong("a b");
  writer.ok("t2", "resident=1-30");
  writer.error("-", "TOOLONG", "a line may have 10 bytes", true);
  writer.stats("-", "{}");
  CHECK(writer.take(1 << 20) ==
        "INFO {}\r\nPONG\r\nPONG a b\r\nOK t2 resident=1-30\r\nERR - TOOLONG a line may have 10 bytes; "
        "closing\r\nSTATS - "
        "{}\r\n");
  CHECK(writer.empty());
}

TEST_CASE("ReplyWriter: text of a message cannot break the framing", "[protocol]") {
  ReplyWriter writer;
  writer.error("t1", "BADREQ", "no\r\nEND t1 stop\x01");
  CHECK(writer.take(1 << 20) == "ERR t1 BADREQ no  END t1 stop \r\n");
  CHECK(one_line(std::string(1000, 'x')).size() == 512);
  CHECK(one_line("ab\xc3\xa9", 3) == "ab");  // never half a code point
}

TEST_CASE("ReplyWriter: long text is cut between code points, seq has no gap", "[protocol]") {
  ReplyWriter writer(WriterLimits{.frame_bytes = 4});
  writer.open("t");
  writer.token("t", "abc\xe2\x82\xac\xc3\xa9z", " ids=1");
  writer.token("t", "", " ids=2");
  CHECK(writer.take(1 << 20) ==
        "ACK t\r\nTOK t 1 3 ids=1\r\nabc\r\nTOK t 2 3\r\n\xe2\x82\xac\r\nTOK t 3 3\r\n\xc3\xa9z\r\nTOK t 4 0 "
        "ids=2\r\n\r\n");
}

TEST_CASE("ReplyWriter: streams share by bytes, control replies overtake", "[protocol]") {
  ReplyWriter writer(WriterLimits{.frame_bytes = 256});
  writer.open("big");
  writer.open("small");
  for (int i = 0; i < 200; ++i) writer.token("big", std::string(256, 'b'));
  for (int i = 0; i < 100; ++i) writer.token("small", "s");
  writer.pong("now");
  std::string sent = writer.take(64);
  CHECK(sent.starts_with("PONG now\r\n"));
  while (sent.size() < 4000) sent += writer.take(512);
  std::map<char, std::size_t> bytes;
  for (const char c : sent) ++bytes[c];
  // "small" has 16-byte frames of one letter: by bytes it gets its half, which is more frames than "big"
  // gets.
  CHECK(bytes['s'] > 50);
  CHECK(bytes['b'] > 1000);
  while (!writer.empty()) sent += writer.take(512);
  CHECK(sent.find("TOK big 200 256\r\n") != std::string::npos);
  CHECK(sent.find("TOK small 100 1\r\n") != std::string::npos);
}

TEST_CASE("ReplyWriter: one stream with frames above its share still moves", "[protocol]") {
  ReplyWriter writer(WriterLimits{.frame_bytes = 8});
  writer.open("a");
  writer.token("a", "12345678", " ids=1234567890,1234567890,1234567890,1234567890");
  writer.end("a", "stop");
  std::string all;
  for (int i = 0; i < 20 && !writer.empty(); ++i) all += writer.take(1);
  CHECK(writer.empty());
  CHECK(all.ends_with("END a stop\r\n"));
}

TEST_CASE("ReplyWriter: room, reuse of a tag, a stream's end", "[protocol]") {
  ReplyWriter writer(WriterLimits{.stream_bytes = 100, .control_bytes = 40});
  writer.open("a");
  CHECK(writer.has_room("a"));
  writer.token("a", std::string(200, 'x'));
  CHECK_FALSE(writer.has_room("a"));
  CHECK(writer.has_room("b"));
  writer.end("a", "stop");
  writer.token("a", "after the end");  // nothing follows a stream's end
  writer.end("a", "stop");
  writer.fail("a", "INTERNAL", "x");
  CHECK(writer.holds("a"));
  const std::string all = writer.take(1 << 20);
  CHECK(all.find("after the end") == std::string::npos);
  CHECK(all.ends_with("END a stop\r\n"));
  CHECK_FALSE(writer.holds("a"));
  writer.open("a");
  writer.token("a", "again");
  writer.fail("a", "INTERNAL", "device fault");
  CHECK(writer.take(1 << 20) == "ACK a\r\nTOK a 1 5\r\nagain\r\nERR a INTERNAL device fault\r\n");
  CHECK(writer.has_room("a"));
  for (int i = 0; i < 5; ++i) writer.pong("xxxxxxxx");
  CHECK(writer.overflowed());
  writer.clear();
  CHECK(writer.empty());
  CHECK_FALSE(writer.overflowed());
  CHECK(writer.take(10).empty());
}

TEST_CASE("error_word: every code has a stable word", "[protocol]") {
  CHECK(error_word(Errc::bad_request) == "BADREQ");
  CHECK(error_word(Errc::too_long) == "TOOLONG");
  CHECK(error_word(Errc::busy) == "BUSY");
  CHECK(error_word(Errc::no_model) == "NOMODEL");
  CHECK(error_word(Errc::draining) == "DRAINING");
  CHECK(error_word(Errc::device_fault) == "INTERNAL");
}
