#pragma once
// GGUF's quantised blocks as they lie in files, 32 columns at a time.

#include <cstddef>
#include <cstdint>

#include "gpu/data_type.hpp"

namespace helios::gpu {

/// 32 columns of a row: weight k = scale[k / 16] * (q[k] - offset) + minimum.
struct FileBlock {
  std::uint8_t q[32];
  float scale[2];
  float minimum;  // 0 where offset is not
  int offset;     // 128 (q8_0), 32 (q6_k) or 0
};

/// Block `index` of a row of a quantised type. Layouts are ggml's:
///   q8_0        fp16 d, 32 int8
///   q4_0, q4_1  fp16 d (q4_1: and m), 16 bytes: columns 0..15 in the low nibbles, 16..31 in the high ones
///   q5_0, q5_1  fp16 d (q5_1: and m), 32 fifth bits, 16 bytes as above
///   q4_k, q5_k  256 columns: fp16 d, fp16 d of minimums, 8 pairs of a 6-bit scale and minimum in 12 bytes,
///               q5_k: 32 bytes whose bit b is the fifth bit of block b, then 32 bytes for two blocks, low
///               nibbles first
///   q6_k        256 columns: 128 bytes of nibbles, 64 of bit pairs, 16 int8 scales of 16 columns, fp16 d
FileBlock read_block(DataType type, const std::byte* row, std::int64_t index);

/// A row of `cols` elements of any type as floats: what the file says, before any repacking.
void dequantise_row(DataType type, const std::byte* row, std::int64_t cols, float* out);

}  // namespace helios::gpu
