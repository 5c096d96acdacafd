// Any bytes, split anywhere: the same events, bounded memory, nothing after a fatal fault.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <utility>
#include <vector>

#include "protocol/line_parser.hpp"

namespace {

using namespace helios::protocol;

constexpr ParserLimits kLimits{.line_bytes = 128, .payload_bytes = 64, .words = 8};

void require(bool condition) {
  if (!condition) std::abort();
}

/// The first byte of the input chooses the size of the pieces.
std::vector<ParserEvent> parse(std::string_view bytes, std::size_t piece) {
  LineParser parser(kLimits);
  std::vector<ParserEvent> events;
  const auto take = [&](ParserEvent event) {
    require(events.empty() || !std::holds_alternative<Fault>(events.back()) ||
            !std::get<Fault>(events.back()).fatal);
    if (const Line* line = std::get_if<Line>(&event)) {
      require(!line->verb.empty());
      require(!line->text || line->text->size() <= kLimits.line_bytes);
    }
    events.push_back(std::move(event));
  };
  while (!bytes.empty()) {
    std::string_view input = bytes.substr(0, piece);
    bytes.remove_prefix(input.size());
    while (std::optional<ParserEvent> event = parser.next(input)) take(std::move(*event));
    require(input.empty());
    require(parser.buffered_bytes() <= kLimits.line_bytes + kLimits.payload_bytes);
  }
  if (std::optional<ParserEvent> event = parser.finish()) take(std::move(*event));
  return events;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  require(parse(bytes, bytes.size() + 1) == parse(bytes, 1 + data[0] % 37));
  return 0;
}
