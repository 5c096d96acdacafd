#pragma once
// Weights as the host's kernels read them: panels of 16 output rows, contiguous along the columns.

#include <cstddef>
#include <cstdint>

#include "gpu/data_type.hpp"

namespace helios::gpu {

inline constexpr std::int64_t kPanelRows = 16;

/// A weight matrix on the device: out[r] = sum over c of w[r, c] * in[c]. Borrowed bytes (a Slab owns them).
///
/// Panel p holds rows 16p .. 16p+15; absent rows of the last panel are zero. Columns of quantised types lie
/// in blocks of 32 as unsigned codes q: eight groups g of 4 columns, whose vectors of 64 bytes have column
/// 4g+i of row r in byte 4r+i. A block, by type:
///   q8_0   8 vectors of q, one a group; 16 fp16 d                             weight = d (q - 128)    544
///   bytes q4_1   4 vectors of nibbles: group 2j low, 2j+1 high; 16 fp16 d, 16 m     weight = d q + m 320
///   bytes q5_1   4 vectors of nibbles; 1 vector of fifth bits: group g is bit g;
///          16 fp16 d, 16 m                                                    weight = d q + m        384
///          bytes
///   q6_k   4 vectors of nibbles; 2 vectors of the two high bits: group g is bits 2(g % 4) and the next of
///          vector g / 4; 16 fp16 d of columns 0..15, 16 of columns 16..31     weight = d (q - 32)     448
///          bytes
/// f32, f16, bf16: column c is 16 values, one a row. One layout serves every instruction set.
///
/// Other file types are packed to one of these: q4_0 and q4_k as q4_1, q5_0 and q5_k as q5_1. All are exact
/// but the K types, whose scales (and minimums) are products rounded to fp16: a weight is off by at most
/// 2^-11 of its d |q| (q - 32 in q6_k) plus 2^-11 of |m|, and by 2^-25 where those are below 2^-14.
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
    case DataType::q5_k:
      return DataType::q5_1;
    default:
      return file_type;
  }
}
constexpr std::int64_t panel_count(std::int64_t rows) noexcept {
  return (rows + kPanelRows - 1) / kPanelRows;
}

/// Bytes of one panel of `cols` columns: of the packed form of `type`.
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
    case DataType::q5_1:
      return columns / 32 * 384;
    case DataType::q6_k:
      return columns / 32 * 448;
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
