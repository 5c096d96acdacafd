#pragma once
// JSON from strangers.

#include <boost/json/value.hpp>
#include <cstddef>
#include <string>
#include <string_view>

#include "runtime/result.hpp"

namespace helios::model {

/// The value of `text`, in `memory`. Unlike boost::json::parse, numbers with a fraction are the nearest
/// double: scores that tie in one program must tie in another. A name that appears twice in an object has its
/// last value. Errors: bad_file, beginning with `label` (not JSON, or more than `max_depth` deep).
Result<boost::json::value> parse_json(std::string_view text, const std::string& label, std::size_t max_depth,
                                      boost::json::storage_ptr memory = {});

}  // namespace helios::model
