#pragma once
// Floats to GGUF's block types, for weights that are quantised while they are loaded.

#include <cstddef>
#include <cstdint>

#include "gpu/data_type.hpp"

namespace helios::gpu {

/// Whether quantise_row makes `to`.
constexpr bool can_quantise_to(DataType to) noexcept {
  return to == DataType::q8_0 || to == DataType::q4_1 || to == DataType::q4_k;
}

/// One row of `cols` floats (whole blocks) in the file layout of `to` (q8_0, q4_1, q4_k): row_bytes(to,
/// cols) bytes. Round to nearest against the scales as they are stored, so that a value's error is at most
/// half a step; of q4_k, whose scales have 6 bits each, a step and a half where the rounded scale does not
/// reach. A block with a value that is not finite becomes NaN as a whole.
void quantise_row(DataType to, const float* row, std::int64_t cols, std::byte* out);

}  // namespace helios::gpu
