#pragma once
// GGUF's block types as they lie in files (ggml-common.h's block_q5_0 … block_q6_K), one block at a time.

#include <array>
#include <cstddef>
#include <cstdint>

#include "gpu/data_type.hpp"

namespace helios::gpu {

/// The floats of one block: block_elements(type) of them. Quantised types only.
void dequantise_block(DataType type, const std::byte* block, float* out);

/// One of the eight parts of a Q4_K block: 32 weights d * q + m. d and m are products of a 16-bit and a 6-bit number, here rounded
/// to fp16: a weight is off by at most 2^-11 of d * q plus 2^-11 of |m| (and 2^-25 where those are subnormal).
struct Q4Part {
  std::uint16_t d = 0, m = 0;           // fp16
  std::array<std::byte, 16> nibbles{};  // as Q4_1's: columns 0..15 low, 16..31 high
};
Q4Part q4_k_part(const std::byte* block, int part);

/// A Q5_0 block as a Q8_0 block: the same scale and whole numbers, exactly.
std::array<std::byte, 34> q5_0_as_q8_0(const std::byte* block);

}  // namespace helios::gpu
