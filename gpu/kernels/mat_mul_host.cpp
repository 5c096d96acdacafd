// The instruction sets' headers come with Highway; raw intrinsics are used for int8 only.
#include <immintrin.h>

#include <algorithm>
#include <cstring>

#include "gpu/half.hpp"
#include "gpu/kernels/mat_mul.hpp"
#include "gpu/kernels/range.hpp"
#include "gpu/kernels/targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "gpu/kernels/mat_mul_host.cpp"
#include <hwy/foreach_target.h>  // includes this file once per target
#include <hwy/highway.h>

#include "gpu/kernels/simd-inl.hpp"

#ifndef HELIOS_MAT_MUL_ONCE
#define HELIOS_MAT_MUL_ONCE
namespace helios::gpu {
using Int8Panels = void (*)(const Projection& p, const Activation& in, std::int64_t rows, std::int64_t begin,
                            std::int64_t end);
}
#endif

HWY_BEFORE_NAMESPACE();
namespace helios::gpu::HWY_NAMESPACE {

namespace int8 {
#define HELIOS_INT8_VNNI 0
#if HWY_TARGET == HWY_SSE4
#define HELIOS_INT8_BITS 128
#elif HWY_TARGET == HWY_AVX2
#define HELIOS_INT8_BITS 256
#else
#define HELIOS_INT8_BITS 512
#endif
#include "gpu/kernels/mat_mul_int8-inl.hpp"
#undef HELIOS_INT8_VNNI
#undef HELIOS_INT8_BITS
}  // namespace int8

// Unquantised weights: float activations, columns in order, one multiply-add each.
template <DataType kType>
HWY_INLINE VF load_weights(const std::byte* at) {
  const DF d;
  if constexpr (kType == DataType::f32) {
    return hn::LoadU(d, reinterpret_cast<const float*>(at));
  } else if constexpr (kType == DataType::f16) {
    return load_half(reinterpret_cast<const std::uint16_t*>(at));
  } else {
    const hn::RebindToUnsigned<DF> du;
    const hn::Rebind<std::uint16_t, DF> dh;
    return hn::BitCast(
        d, hn::ShiftLeft<16>(hn::PromoteTo(du, hn::LoadU(dh, reinterpret_cast<const std::uint16_t*>(at)))));
  }
}

HWY_INLINE void store_part(const Projection& p, std::int64_t row, std::int64_t column, VF value) {
  const DF d;
  constexpr std::int64_t kLanes = hn::MaxLanes(d);
  float* out = p.out + row * p.out_stride + column;
  const std::int64_t valid = p.w.rows - column;
  if (valid >= kLanes) {
    hn::StoreU(p.accumulate ? hn::Add(hn::LoadU(d, out), value) : value, d, out);
    return;
  }
  float lanes[kLanes];
  hn::StoreU(value, d, lanes);
  for (std::int64_t i = 0; i < valid; ++i) out[i] = p.accumulate ? out[i] + lanes[i] : lanes[i];
}

/// Rows [row, row + MR) times one panel: 16 / lanes vectors a row.
template <DataType kType, int MR>
HWY_INLINE void float_tile(const Projection& p, const Activation& in, std::int64_t row, std::int64_t panel) {
  const DF d;
  constexpr int kLanes = hn::MaxLanes(d), kParts = 16 / kLanes;
  constexpr int kStep = kParts > 2 ? 2 : kParts;  // vectors of a row held at once
  constexpr std::size_t kSize = block_bytes(kType);
  const std::byte* w = p.w.data + static_cast<std::size_t>(panel) * panel_bytes(kType, p.w.cols);
  const float* x = in.floats() + row * p.w.cols;
  for (int part = 0; part < kParts; part += kStep) {
    VF sum[MR][kStep];
    for (auto& line : sum) {
      for (VF& v : line) v = hn::Zero(d);
    }
    const std::byte* at = w + static_cast<std::size_t>(part * kLanes) * kSize;
    for (std::int64_t c = 0; c < p.w.cols; ++c, at += 16 * kSize) {
      VF weights[kStep];
      for (int s = 0; s < kStep; ++s)
        weights[s] = load_weights<kType>(at + static_cast<std::size_t>(s * kLanes) * kSize);
      for (int m = 0; m < MR; ++m) {
        const VF value = hn::Set(d, x[m * p.w.cols + c]);
        for (int s = 0; s < kStep; ++s) sum[m][s] = hn::MulAdd(weights[s], value, sum[m][s]);
      }
    }
    for (int m = 0; m < MR; ++m) {
      for (int s = 0; s < kStep; ++s) store_part(p, row + m, panel * 16 + (part + s) * kLanes, sum[m][s]);
    }
  }
}

template <DataType kType>
void float_panels(const Projection& p, const Activation& in, std::int64_t rows, std::int64_t begin,
                  std::int64_t end) {
  for (std::int64_t panel = begin; panel < end; ++panel) {
    std::int64_t row = 0;
    for (; row + 4 <= rows; row += 4) float_tile<kType, 4>(p, in, row, panel);
    for (; row < rows; ++row) float_tile<kType, 1>(p, in, row, panel);
  }
}

/// Chunks are cut over the pairs of panels of all projections, in order.
void products(const MatMul& op, std::int64_t chunk, std::int64_t chunks, Int8Panels int8_panels) {
  std::int64_t pairs = 0;
  for (std::int32_t k = 0; k < op.count; ++k) {
    pairs += (panel_count(op.projections[static_cast<std::size_t>(k)].w.rows) + 1) / 2;
  }
  const Range mine = chunk_range(pairs, chunk, chunks);
  std::int64_t first = 0;
  for (std::int32_t k = 0; k < op.count; ++k) {
    const Projection& p = op.projections[static_cast<std::size_t>(k)];
    const std::int64_t panels = panel_count(p.w.rows), count = (panels + 1) / 2;
    const std::int64_t begin = std::max<std::int64_t>(mine.begin - first, 0) * 2;
    const std::int64_t end = std::min(std::min(mine.end - first, count) * 2, panels);
    first += count;
    if (begin >= end) continue;
    switch (p.w.type) {
      case DataType::f32:
        float_panels<DataType::f32>(p, op.in, op.rows, begin, end);
        break;
      case DataType::f16:
        float_panels<DataType::f16>(p, op.in, op.rows, begin, end);
        break;
      case DataType::bf16:
        float_panels<DataType::bf16>(p, op.in, op.rows, begin, end);
        break;
      default:
        int8_panels(p, op.in, op.rows, begin, end);
        break;
    }
  }
}

void mat_mul(const MatMul& op, std::int64_t chunk, std::int64_t chunks) {
  products(op, chunk, chunks, int8::int8_panels);
}

}  // namespace helios::gpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_TARGET == HWY_AVX3
// AVX-512 VNNI alone: Highway 1.0's AVX3_DL also asks for AVX-VNNI, which Ice Lake and Zen 4 lack.
HWY_PUSH_ATTRIBUTES("avx,avx2,fma,f16c,avx512f,avx512vl,avx512dq,avx512bw,avx512vnni")
namespace helios::gpu::vnni {
#define HELIOS_INT8_VNNI 1
#define HELIOS_INT8_BITS 512
#include "gpu/kernels/mat_mul_int8-inl.hpp"
#undef HELIOS_INT8_VNNI
#undef HELIOS_INT8_BITS
}  // namespace helios::gpu::vnni
HWY_POP_ATTRIBUTES
#endif

#if HWY_ONCE
namespace helios::gpu {

namespace {
void mat_mul_vnni(const MatMul& op, std::int64_t chunk, std::int64_t chunks) {
  N_AVX3::products(op, chunk, chunks, vnni::int8_panels);
}
}  // namespace

Kernel<MatMul> mat_mul_kernel(Isa isa) {
  return isa == Isa::avx3_dl ? mat_mul_vnni : HELIOS_FOR_ISA(isa, mat_mul);
}

}  // namespace helios::gpu
#endif
