#include "gpu/kernels/add_rows.hpp"
#include "gpu/kernels/range.hpp"
#include "gpu/kernels/targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gpu/kernels/add_rows_host.cpp"
#include <hwy/foreach_target.h>  // includes this file once per target
#include <hwy/highway.h>

#include "gpu/kernels/simd-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace helios::gpu::HWY_NAMESPACE {

HWY_INLINE void add_to(float* x, const float* y, std::int64_t count) {
  const DF d;
  constexpr std::int64_t kLanes = hn::MaxLanes(d);
  std::int64_t c = 0;
  for (; c + kLanes <= count; c += kLanes)
    hn::StoreU(hn::Add(hn::LoadU(d, x + c), hn::LoadU(d, y + c)), d, x + c);
  for (; c < count; ++c) x[c] += y[c];
}

void add_rows(const AddRows& op, std::int64_t chunk, std::int64_t chunks) {
  const auto [begin, end] = chunk_range(op.rows, chunk, chunks);
  for (std::int64_t i = begin; i < end; ++i) {
    float* x = op.x + i * op.cols;
    if (op.y != nullptr) add_to(x, op.y + i * op.cols, op.cols);
    if (op.bias != nullptr) add_to(x, op.bias, op.cols);
  }
}

}  // namespace helios::gpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace helios::gpu {

Kernel<AddRows> add_rows_kernel(Isa isa) {
  return HELIOS_FOR_ISA(isa, add_rows);
}

}  // namespace helios::gpu
#endif
