#pragma once
// GGUF files of true dimensions with random weights: for load and speed work without a download.

#include <cstdint>
#include <functional>
#include <string>

#include "gpu/data_type.hpp"
#include "model/config.hpp"
#include "runtime/result.hpp"

namespace helios::model {

struct SyntheticOptions {
  ModelConfig config;                        // synthetic_shape(), with as many layers as are wanted
  gpu::DataType type = gpu::DataType::q8_0;  // of matrices: f16, q8_0, q4_0 or q4_1; embedding and head of
                                             // the 4-bit types are q8_0, positions f16, vectors f32
  std::uint32_t seed = 0;
  /// Called with the bytes written so far; may be empty.
  std::function<void(std::uint64_t)> progress;
};

/// Bytes that the file will have. Errors: bad_request (a type that is not made, columns that are not blocks).
Result<std::uint64_t> synthetic_bytes(const SyntheticOptions& options);

/// Writes the file; the same options give the same bytes. Blocks are made in quantised form, a MiB at a time.
/// Matrices have a standard deviation of 1 / sqrt(columns), so that activations neither die nor overflow.
/// Its vocabulary: 256 bytes, four merges and control tokens, then unused fillers up to the true size.
/// Errors: io_error (also: the disk has no room, before anything is written), bad_request.
Result<void> write_synthetic_model(const std::string& path, const SyntheticOptions& options);

}  // namespace helios::model
