#include <algorithm>
#include <cstring>
#include <limits>

#include "gpu/half.hpp"
#include "gpu/kernels/range.hpp"
#include "gpu/kernels/targets.hpp"

namespace helios::gpu {

namespace {

std::uint16_t load16(const std::byte* at) {
  std::uint16_t value;
  std::memcpy(&value, at, 2);
  return value;
}

/// As unpack_row, with the scales of a block read once. Same arithmetic, so the same bits.
void unpack_blocks(const Matrix& table, std::int64_t row, float* out) {
  const std::size_t size = panel_bytes(table.type, 32), r = static_cast<std::size_t>(row % kPanelRows);
  const std::byte* block =
      table.data + static_cast<std::size_t>(row / kPanelRows) * panel_bytes(table.type, table.cols);
  for (std::int64_t b = 0; b < table.cols / 32; ++b, block += size, out += 32) {
    if (table.type == DataType::q8_0) {
      const float d = half_to_float(load16(block + 512 + 2 * r));
      for (std::size_t k = 0; k < 32; ++k) {
        const int q = std::to_integer<int>(block[64 * (k / 4) + 4 * r + k % 4]) - 128;
        out[k] = d * static_cast<float>(q);
      }
    } else {
      const float d = half_to_float(load16(block + 256 + 2 * r)),
                  m = half_to_float(load16(block + 288 + 2 * r));
      for (std::size_t j = 0; j < 4; ++j) {
        for (std::size_t i = 0; i < 4; ++i) {
          const int both = std::to_integer<int>(block[64 * j + 4 * r + i]);
          out[8 * j + i] = d * static_cast<float>(both & 15) + m;
          out[8 * j + 4 + i] = d * static_cast<float>(both >> 4) + m;
        }
      }
    }
  }
}

}  // namespace

void embed_host(const Embed& op, std::int64_t chunk, std::int64_t chunks) {
  const auto [begin, end] = chunk_range(op.rows, chunk, chunks);
  for (std::int64_t i = begin; i < end; ++i) {
    float* out = op.out + i * op.table.cols;
    if (op.ids[i] < 0 || op.ids[i] >= op.table.rows) {
      std::fill_n(out, op.table.cols, std::numeric_limits<float>::quiet_NaN());
    } else if (is_quantised(op.table.type)) {
      unpack_blocks(op.table, op.ids[i], out);
    } else {
      unpack_row(op.table, op.ids[i], out);
    }
  }
}

}  // namespace helios::gpu
