#pragma once
#include <cstdint>

namespace helios::gpu {

/// to[to_index[i]] = from[from_index[i]], rows of cols floats; a null index is the identity. No overlap.
struct CopyRows {
  const float* from = nullptr;
  float* to = nullptr;
  std::int64_t rows = 0, cols = 0;
  const std::int32_t* from_index = nullptr;
  const std::int32_t* to_index = nullptr;
};

void copy_rows_reference(const CopyRows& op, std::int64_t chunk, std::int64_t chunks);

}  // namespace helios::gpu
