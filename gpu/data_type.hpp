#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace helios::gpu {

/// Element types of weights. Block types keep GGUF's layouts in files (gpu/file_blocks.hpp).
enum class DataType : std::uint8_t { f32, f16, bf16, q8_0, q4_0, q4_1, q5_0, q5_1, q4_k, q5_k, q6_k };

constexpr std::string_view to_string(DataType type) noexcept {
  switch (type) {
    case DataType::f32:
      return "F32";
    case DataType::f16:
      return "F16";
    case DataType::bf16:
      return "BF16";
    case DataType::q8_0:
      return "Q8_0";
    case DataType::q4_0:
      return "Q4_0";
    case DataType::q4_1:
      return "Q4_1";
    case DataType::q5_0:
      return "Q5_0";
    case DataType::q5_1:
      return "Q5_1";
    case DataType::q4_k:
      return "Q4_K";
    case DataType::q5_k:
      return "Q5_K";
    case DataType::q6_k:
      return "Q6_K";
  }
  return "?";
}

constexpr bool is_quantised(DataType type) noexcept {
  return type >= DataType::q8_0;
}

/// Elements of one block in a file: rows of a matrix are whole blocks.
constexpr std::int64_t block_elements(DataType type) noexcept {
  return type >= DataType::q4_k ? 256 : is_quantised(type) ? 32 : 1;
}

/// Bytes of one block in a file.
constexpr std::size_t block_bytes(DataType type) noexcept {
  switch (type) {
    case DataType::f32:
      return 4;
    case DataType::f16:
    case DataType::bf16:
      return 2;
    case DataType::q8_0:
      return 34;
    case DataType::q4_0:
      return 18;
    case DataType::q4_1:
      return 20;
    case DataType::q5_0:
      return 22;
    case DataType::q5_1:
      return 24;
    case DataType::q4_k:
      return 144;
    case DataType::q5_k:
      return 176;
    case DataType::q6_k:
      return 210;
  }
  return 0;
}

/// Bytes of one row of `cols` elements in a file; cols is a multiple of block_elements.
constexpr std::size_t row_bytes(DataType type, std::int64_t cols) noexcept {
  return static_cast<std::size_t>(cols / block_elements(type)) * block_bytes(type);
}

}  // namespace helios::gpu
