#pragma once
#include <cstdint>

namespace helios::gpu {

struct Range {
  std::int64_t begin = 0, end = 0;
};

/// Part `chunk` of `chunks` near-equal contiguous parts of [0, n).
constexpr Range chunk_range(std::int64_t n, std::int64_t chunk, std::int64_t chunks) noexcept {
  return {n * chunk / chunks, n * (chunk + 1) / chunks};
}

}  // namespace helios::gpu
