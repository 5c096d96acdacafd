#include "apps/size_text.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace helios;
using namespace helios::apps;

TEST_CASE("sizes are read with their unit", "[apps]") {
  struct Case {
    const char* text;
    std::uint64_t bytes;
  };
  const Case cases[] = {{"0", 0},         {"1048576", 1048576}, {"512MiB", 536870912},
                        {"1.5KiB", 1536}, {"2GB", 2000000000},  {"7B", 7}};
  for (const Case& c : cases) {
    CAPTURE(c.text);
    CHECK(parse_size(c.text).value() == c.bytes);
  }
}

TEST_CASE("what is not a size is refused with the spellings", "[apps]") {
  for (const char* text : {"", "MiB", "-1", "12 MiB", "1e400", "nan", "12mib", "1MiBx", "99999999999GiB"}) {
    CAPTURE(text);
    const Result<std::uint64_t> size = parse_size(text);
    REQUIRE(size.has_error());
    CHECK(size.error().code == Errc::bad_request);
    CHECK(size.error().message.find("512MiB") != std::string::npos);
  }
}

TEST_CASE("sizes are printed for people", "[apps]") {
  CHECK(format_size(0) == "0 B");
  CHECK(format_size(1023) == "1023 B");
  CHECK(format_size(98362432) == "93.8 MiB");
}
