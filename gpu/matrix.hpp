#pragma once
// Weights as the host's kernels read them: panels of 16 output rows, contiguous along the columns.

#include <cstddef>
#include <cstdint>

#include "gpu/data_type.hpp"

namespace helios::gpu {

inline constexpr std::int64_t kPanelRows = 16;

/// A weight matrix on the device: out[r] = sum over c of w[r, c] * in[c]. Borrowed bytes (a Slab owns them).
///
/// Panel p holds rows 16p .. 16p+15; absent rows of the last panel are zero. Within a panel, by type:
///   f32, f16, bf16   column c: 16 values, one per row
///   q8_0             block of 32 columns: 8 vectors of 64 bytes, byte 4r+i of vector j is row r, column
///   4j+i, as
///                    q + 128; then 16 fp16 scales d                                              = 544 bytes
///   q4_1             4 vectors of 64 bytes, byte 4r+i of vector j: low nibble row r, column 8j+i, high
///   nibble
///                    column 8j+4+i; then 16 fp16 d, 16 fp16 m (weight = d * q + m)               = 320 bytes
/// One layout serves every instruction set. Other file types are packed to one of these: q4_0 as q4_1 with m = -8d, q4_k as q4_1
/// (scales rounded to fp16: Q4Part), q5_0 as q8_0 exactly; q5_1, q5_k and q6_k are quantised again to q8_0, by which a weight is off by at
/// most 1/254 of its block's largest.
struct Matrix {
  DataType type = DataType::f32;  // of the panels: a packed_type
  std::int64_t rows = 0, cols = 0;
  const std::byte* data = nullptr;
};

/// The type of the panels a file type is packed to.
constexpr DataType packed_type(DataType file_type) noexcept {
  switch (file_type) {
    case DataType::q4_0:
    case DataType::q4_k:
      return DataType::q4_1;
    case DataType::q5_0:
    case DataType::q5_1:
    case DataType::q5_k:
    case DataType::q6_k:
      return DataType::q8_0;
    default:
      return file_type;
  }
}
constexpr std::int64_t panel_count(std::int64_t rows) noexcept {
  return (rows + kPanelRows - 1) / kPanelRows;
}

/// Bytes of one panel of `cols` columns, of what `type` is packed to.
constexpr std::size_t panel_bytes(DataType type, std::int64_t cols) noexcept {
  const auto columns = static_cast<std::size_t>(cols);
  switch (packed_type(type)) {
    case DataType::f32:
      return columns * 64;
    case DataType::f16:
    case DataType::bf16:
      return columns * 32;
    case DataType::q8_0:
      return columns / 32 * 544;
    case DataType::q4_1:
      return columns / 32 * 320;
    default:
      return 0;
  }
}

constexpr std::size_t packed_matrix_bytes(DataType file_type, std::int64_t rows, std::int64_t cols) noexcept {
  return static_cast<std::size_t>(panel_count(rows)) * panel_bytes(packed_type(file_type), cols);
}

/// Repacks `rows` rows of the file's bytes (whole rows, row-major) into panels; the first row must be a
/// multiple of 16 of its matrix. Rows beyond `rows` in the last panel become zero.
void pack_panels(DataType file_type, std::int64_t rows, std::int64_t cols, const std::byte* file,
                 std::byte* panels);

/// Row `row` of a packed matrix as floats [cols]; the plain inverse of pack_panels.
void unpack_row(const Matrix& matrix, std::int64_t row, float* out);

}  // namespace helios::gpu
