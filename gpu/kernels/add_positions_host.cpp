#include <algorithm>
#include <limits>

#include "gpu/kernels/add_positions.hpp"
#include "gpu/kernels/range.hpp"
#include "gpu/kernels/targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gpu/kernels/add_positions_host.cpp"
#include <hwy/foreach_target.h>  // includes this file once per target
#include <hwy/highway.h>

#include "gpu/kernels/simd-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace helios::gpu::HWY_NAMESPACE {

void add_positions(const AddPositions& op, std::int64_t chunk, std::int64_t chunks) {
  const DF d;
  constexpr std::int64_t kLanes = hn::MaxLanes(d);
  const auto [begin, end] = chunk_range(op.rows, chunk, chunks);
  for (std::int64_t i = begin; i < end; ++i) {
    float* x = op.x + i * op.cols;
    const std::int64_t row = std::int64_t{op.meta[i].position} + op.offset;
    if (row < 0 || row >= op.table_rows) {
      std::fill_n(x, op.cols, std::numeric_limits<float>::quiet_NaN());
      continue;
    }
    const float* y = op.table + row * op.cols;
    std::int64_t c = 0;
    for (; c + kLanes <= op.cols; c += kLanes)
      hn::StoreU(hn::Add(hn::LoadU(d, x + c), hn::LoadU(d, y + c)), d, x + c);
    for (; c < op.cols; ++c) x[c] += y[c];
  }
}

}  // namespace helios::gpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace helios::gpu {

Kernel<AddPositions> add_positions_kernel(Isa isa) {
  return HELIOS_FOR_ISA(isa, add_positions);
}

}  // namespace helios::gpu
#endif
