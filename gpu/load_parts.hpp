#pragma once
#include <span>
#include <vector>

#include "gpu/copy_engine.hpp"

namespace helios::gpu {

/// One step of a load: what is read at once, and cancelled between.
struct LoadPart {
  LoadPiece piece;        // file, rows, offset, bytes and destination of this part alone
  std::size_t index = 0;  // of the request's piece
};

/// Cuts a validated request into parts of at most kCopyPieceBytes, whole panels of 16 rows each.
std::vector<LoadPart> split(const LoadRequest& request);

/// Bytes of staging that the largest part needs.
std::size_t staging_bytes(std::span<const LoadPart> parts);

/// Reads the part into `staging` and repacks it to its destination.
Result<void> load_part(const LoadPart& part, std::span<std::byte> staging);

}  // namespace helios::gpu
