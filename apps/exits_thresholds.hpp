#pragma once
#include <map>
#include <string>

#include "runtime/result.hpp"

namespace helios::apps {

/// Writes `from` (an exits file) to `to` with these thresholds by exit in its metadata, and `calibration` as
/// where they come from; an exit that is not named loses the one it had. Tensors stay as they are. `to`
/// appears whole or not at all. Errors: io_error, bad_file.
Result<void> write_thresholds(const std::string& from, const std::string& to,
                              const std::map<int, double>& thresholds, const std::string& calibration);

}  // namespace helios::apps
