#pragma once
// Dimensions of published models, for files of true size with random weights.

#include <string>
#include <string_view>

#include "model/config.hpp"
#include "runtime/result.hpp"

namespace helios::model {

/// By a published model's name ("opt-1.3b"). Source: the models' own config.json files. Errors: bad_request,
/// with the names that are known.
Result<ModelConfig> synthetic_shape(std::string_view name);

/// "opt-125m, opt-1.3b, …".
std::string synthetic_shape_names();

}  // namespace helios::model
