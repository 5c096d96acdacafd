#include "gpu/load_parts.hpp"

#include <algorithm>

#include "gpu/file_blocks.hpp"
#include "gpu/matrix.hpp"
#include "gpu/quantise.hpp"

namespace helios::gpu {

namespace {

/// Rows of floats in the file, held in blocks: a panel at a time, so that the floats stay in cache.
void quantise(const LoadPiece& piece, const std::byte* bytes) {
  const std::size_t from_row = row_bytes(piece.type, piece.cols),
                    to_row = row_bytes(piece.held(), piece.cols);
  std::vector<float> floats(static_cast<std::size_t>(piece.cols));
  std::vector<std::byte> blocks(to_row * static_cast<std::size_t>(kPanelRows));
  for (std::int64_t first = 0; first < piece.rows; first += kPanelRows) {
    const std::int64_t count = std::min(kPanelRows, piece.rows - first);
    for (std::int64_t r = 0; r < count; ++r) {
      dequantise_row(piece.type, bytes + static_cast<std::size_t>(first + r) * from_row, piece.cols,
                     floats.data());
      quantise_row(piece.held(), floats.data(), piece.cols,
                   blocks.data() + static_cast<std::size_t>(r) * to_row);
    }
    pack_panels(piece.held(), count, piece.cols, blocks.data(),
                piece.destination + packed_matrix_bytes(piece.held(), first, piece.cols));
  }
}

}  // namespace

Result<void> validate(const LoadRequest& request) {
  if (!request.file && request.pieces.empty()) return fail(Errc::bad_request, "a load needs a file");
  constexpr std::int64_t kMaxSide = std::int64_t{1} << 31;
  for (const LoadPiece& piece : request.pieces) {
    if (!piece.file && !request.file) return fail(Errc::bad_request, "a load needs a file");
    if (piece.destination == nullptr) return fail(Errc::bad_request, "a load piece has no destination");
    if (piece.rows < 1 || piece.cols < 1 || piece.rows > kMaxSide || piece.cols > kMaxSide ||
        piece.cols % block_elements(piece.type) != 0 || piece.cols % block_elements(piece.held()) != 0) {
      return fail(Errc::bad_request, "a load piece's shape is not whole blocks of its type");
    }
    if (piece.quantise_to &&
        (piece.raw || is_quantised(piece.type) || !can_quantise_to(*piece.quantise_to))) {
      return fail(Errc::bad_request, "matrices are quantised from F32, F16 or BF16 to Q8_0, Q4_1 or Q4_K");
    }
    if (piece.raw && is_quantised(piece.type)) {
      return fail(Errc::bad_request,
                  "vectors are loaded from F32, F16 or BF16, not " + std::string(to_string(piece.type)));
    }
    if (piece.file_bytes / row_bytes(piece.type, piece.cols) != static_cast<std::uint64_t>(piece.rows) ||
        piece.file_bytes % row_bytes(piece.type, piece.cols) != 0) {
      return fail(Errc::bad_request, "a load piece's bytes do not agree with its shape");
    }
  }
  return {};
}

std::vector<LoadPart> split(const LoadRequest& request) {
  std::vector<LoadPart> parts;
  for (std::size_t index = 0; index < request.pieces.size(); ++index) {
    LoadPiece whole = request.pieces[index];
    if (!whole.file) whole.file = request.file;
    if (whole.raw) {  // a vector has no rows to keep together
      whole.rows *= whole.cols;
      whole.cols = 1;
    }
    const std::size_t row = row_bytes(whole.type, whole.cols);
    const std::int64_t step =
        std::max<std::int64_t>(static_cast<std::int64_t>(kCopyPieceBytes / row) / kPanelRows, 1) * kPanelRows;
    for (std::int64_t first = 0; first < whole.rows; first += step) {
      LoadPart part{whole, index};
      part.piece.rows = std::min(step, whole.rows - first);
      part.piece.file_offset += static_cast<std::uint64_t>(first) * row;
      part.piece.file_bytes = static_cast<std::uint64_t>(part.piece.rows) * row;
      part.piece.destination += whole.raw ? static_cast<std::size_t>(first) * sizeof(float)
                                          : packed_matrix_bytes(whole.held(), first, whole.cols);
      parts.push_back(part);
    }
  }
  return parts;
}

std::size_t staging_bytes(std::span<const LoadPart> parts) {
  std::size_t bytes = 0;
  for (const LoadPart& part : parts) bytes = std::max(bytes, static_cast<std::size_t>(part.piece.file_bytes));
  return bytes;
}

Result<void> load_part(const LoadPart& part, std::span<std::byte> staging) {
  const LoadPiece& piece = part.piece;
  const std::span<std::byte> bytes = staging.first(static_cast<std::size_t>(piece.file_bytes));
  if (Result<void> read = piece.file->read_at(piece.file_offset, bytes); !read) return read;
  if (piece.raw) {
    dequantise_row(piece.type, bytes.data(), piece.rows, reinterpret_cast<float*>(piece.destination));
  } else if (piece.quantise_to) {
    quantise(piece, bytes.data());
  } else {
    pack_panels(piece.type, piece.rows, piece.cols, bytes.data(), piece.destination);
  }
  return {};
}

}  // namespace helios::gpu
