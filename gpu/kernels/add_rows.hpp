#pragma once
#include <cstdint>

namespace helios::gpu {

/// x[i] += y[i], and a bias when given. x, y [rows, cols]; y and bias [cols] may be null.
struct AddRows {
  float* x = nullptr;
  const float* y = nullptr;
  const float* bias = nullptr;
  std::int64_t rows = 0, cols = 0;
};

void add_rows_reference(const AddRows& op, std::int64_t chunk, std::int64_t chunks);

}  // namespace helios::gpu
