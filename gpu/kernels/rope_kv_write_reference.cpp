#include <cmath>

#include "gpu/kernels/kv_access.hpp"
#include "gpu/kernels/range.hpp"
#include "gpu/kernels/rope_kv_write.hpp"

namespace helios::gpu {

namespace {

void rotate(const Rope& rope, std::int32_t position, float* head) {
  for (std::int32_t i = 0; i < rope.dims / 2; ++i) {
    const double factor = rope.factors != nullptr ? double{rope.factors[i]} : 1.0;
    const double angle =
        double{rope.scale} * position * std::pow(double{rope.freq_base}, -2.0 * i / rope.dims) / factor;
    const double cosine = std::cos(angle), sine = std::sin(angle);
    float& a = head[rope.interleaved ? 2 * i : i];
    float& b = head[rope.interleaved ? 2 * i + 1 : i + rope.dims / 2];
    const double x = a, y = b;
    a = static_cast<float>(x * cosine - y * sine);
    b = static_cast<float>(x * sine + y * cosine);
  }
}

}  // namespace

void rope_kv_write_reference(const RopeKvWrite& op, std::int64_t chunk, std::int64_t chunks) {
  const auto [begin, end] = chunk_range(op.rows, chunk, chunks);
  const std::int32_t dim = op.kv.head_dim;
  for (std::int64_t i = begin; i < end; ++i) {
    const RowMeta meta = op.meta[i];
    for (std::int32_t h = 0; op.q != nullptr && h < op.heads; ++h)
      rotate(op.rope, meta.position, op.q + i * op.q_stride + h * dim);
    for (std::int32_t h = 0; h < op.kv.kv_heads; ++h) {
      float* k = op.k + i * op.k_stride + h * dim;
      const float* v = op.v + i * op.v_stride + h * dim;
      rotate(op.rope, meta.position, k);
      std::byte* to = key_at(op.kv, meta.table, meta.position, h);
      for (std::int32_t d = 0; d < dim; ++d) {
        store_element(op.kv.type, to, d, k[d]);
        store_element(op.kv.type, to + value_offset(op.kv), d, v[d]);
      }
    }
  }
}

}  // namespace helios::gpu
