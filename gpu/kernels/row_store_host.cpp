#include <cstring>

#include "gpu/kernels/kv_access.hpp"
#include "gpu/kernels/range.hpp"
#include "gpu/kernels/row_store.hpp"
#include "gpu/kernels/targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gpu/kernels/row_store_host.cpp"
#include <hwy/foreach_target.h>  // includes this file once per target
#include <hwy/highway.h>

#include "gpu/kernels/simd-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace helios::gpu::HWY_NAMESPACE {

void row_store(const RowStore& op, std::int64_t chunk, std::int64_t chunks) {
  const auto [begin, end] = chunk_range(op.rows, chunk, chunks);
  const bool save = op.direction == RowStore::Direction::save;
  const std::int64_t cols = op.pages.cols;
  for (std::int64_t i = begin; i < end; ++i) {
    float* x = op.x + (op.row_index != nullptr ? op.row_index[i] : i) * cols;
    std::byte* page = row_at(op.pages, op.meta[i]);
    if (op.pages.type == DataType::f16) {
      auto* halves = reinterpret_cast<std::uint16_t*>(page);
      if (save) {
        store_halves(x, cols, halves);
      } else {
        load_halves_to(halves, cols, x);
      }
    } else if (save) {
      std::memcpy(page, x, static_cast<std::size_t>(cols) * 4);
    } else {
      std::memcpy(x, page, static_cast<std::size_t>(cols) * 4);
    }
  }
}

}  // namespace helios::gpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace helios::gpu {

Kernel<RowStore> row_store_kernel(Isa isa) {
  return HELIOS_FOR_ISA(isa, row_store);
}

}  // namespace helios::gpu
#endif
