#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace helios::gpu {

/// Element types of weights. Block types keep GGUF's layouts in files: 32 elements a block, fp16 scales
/// first.
enum class DataType : std::uint8_t { f32, f16, bf16, q8_0, q4_0, q4_1 };

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
  }
  return "?";
}

constexpr bool is_quantised(DataType type) noexcept {
  return type >= DataType::q8_0;
}

/// Elements that share a scale: rows of a matrix are whole blocks.
constexpr std::int64_t block_elements(DataType type) noexcept {
  return is_quantised(type) ? 32 : 1;
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
  }
  return 0;
}

/// Bytes of one row of `cols` elements in a file; cols is a multiple of block_elements.
constexpr std::size_t row_bytes(DataType type, std::int64_t cols) noexcept {
  return static_cast<std::size_t>(cols / block_elements(type)) * block_bytes(type);
}

}  // namespace helios::gpu
