#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/result.hpp"

namespace helios::apps {

/// "512MiB", "2GiB", "1.5GB", "1048576" to bytes. Units: B, KiB, MiB, GiB, kB, MB, GB.
/// Errors: bad_request with the accepted spellings.
Result<std::uint64_t> parse_size(std::string_view text);

/// 98362432 -> "93.8 MiB".
std::string format_size(std::uint64_t bytes);

}  // namespace helios::apps
