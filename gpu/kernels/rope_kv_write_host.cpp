#include <cstring>

#include "gpu/kernels/kv_access.hpp"
#include "gpu/kernels/range.hpp"
#include "gpu/kernels/rope_kv_write.hpp"
#include "gpu/kernels/rope_table.hpp"
#include "gpu/kernels/targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gpu/kernels/rope_kv_write_host.cpp"
#include <hwy/foreach_target.h>  // includes this file once per target
#include <hwy/highway.h>

#include "gpu/kernels/simd-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace helios::gpu::HWY_NAMESPACE {

HWY_INLINE void rotate(const Rope& rope, const float* turns, float* head) {
  const std::int32_t half = rope.dims / 2;
  for (std::int32_t i = 0; i < half; ++i) {
    float& a = head[rope.interleaved ? 2 * i : i];
    float& b = head[rope.interleaved ? 2 * i + 1 : i + half];
    const float cosine = turns[2 * i], sine = turns[2 * i + 1], x = a, y = b;
    a = x * cosine - y * sine;
    b = x * sine + y * cosine;
  }
}

HWY_INLINE void store_vector(DataType type, const float* from, std::int32_t count, std::byte* to) {
  if (type == DataType::f32) {
    std::memcpy(to, from, static_cast<std::size_t>(count) * 4);
  } else {
    store_halves(from, count, reinterpret_cast<std::uint16_t*>(to));
  }
}

void rope_kv_write(const RopeKvWrite& op, std::int64_t chunk, std::int64_t chunks) {
  const auto [begin, end] = chunk_range(op.rows, chunk, chunks);
  const std::int32_t dim = op.kv.head_dim;
  for (std::int64_t i = begin; i < end; ++i) {
    const RowMeta meta = op.meta[i];
    const float* turns = rope_turns(op.rope, meta.position);
    for (std::int32_t h = 0; op.q != nullptr && h < op.heads; ++h)
      rotate(op.rope, turns, op.q + i * op.q_stride + h * dim);
    for (std::int32_t h = 0; h < op.kv.kv_heads; ++h) {
      float* k = op.k + i * op.k_stride + h * dim;
      rotate(op.rope, turns, k);
      std::byte* to = key_at(op.kv, meta.table, meta.position, h);
      store_vector(op.kv.type, k, dim, to);
      store_vector(op.kv.type, op.v + i * op.v_stride + h * dim, dim, to + value_offset(op.kv));
    }
  }
}

}  // namespace helios::gpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace helios::gpu {

Kernel<RopeKvWrite> rope_kv_write_kernel(Isa isa) {
  return HELIOS_FOR_ISA(isa, rope_kv_write);
}

}  // namespace helios::gpu
#endif
