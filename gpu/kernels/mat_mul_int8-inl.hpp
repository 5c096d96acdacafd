// Products of int8 activations and quantised panels, in raw intrinsics. Included once per instruction set
// inside a namespace whose target attributes are set: HELIOS_INT8_BITS is 128, 256 or 512, HELIOS_INT8_VNNI 0
// or 1. No include guard: see mat_mul_host.cpp.
//
// The integer part of a block is exact, and the float part adds blocks in the order of columns, so a row's
// result is the same in every shape of micro-kernel. Without VNNI: maddubs pairs in int16. Q4: 16 products of
// at most 15 * 128 fit int16 over a whole block of 32 columns. Q8: |w| * sign(a, w), at most 2 * 128 * 127,
// fits for one vector.

#if HELIOS_INT8_BITS == 512
using Ints = __m512i;
using Floats = __m512;
inline Ints load_ints(const std::uint8_t* at) {
  return _mm512_loadu_si512(at);
}
inline Ints broadcast(std::int32_t v) {
  return _mm512_set1_epi32(v);
}
inline Ints both(Ints a, Ints b) {
  return _mm512_and_si512(a, b);
}
inline Ints high_nibbles(Ints a, Ints low) {
  return _mm512_and_si512(_mm512_srli_epi16(a, 4), low);
}
inline Floats broadcast_float(float v) {
  return _mm512_set1_ps(v);
}
inline Floats load_floats(const float* at) {
  return _mm512_loadu_ps(at);
}
inline void store_floats(float* at, Floats v) {
  _mm512_storeu_ps(at, v);
}
inline Floats add(Floats a, Floats b) {
  return _mm512_add_ps(a, b);
}
inline Floats multiply(Floats a, Floats b) {
  return _mm512_mul_ps(a, b);
}
inline Floats multiply_add(Floats a, Floats b, Floats c) {
  return _mm512_fmadd_ps(a, b, c);
}
inline Floats to_floats(Ints a) {
  return _mm512_cvtepi32_ps(a);
}
inline Floats load_halves(const std::uint8_t* at) {
  return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(at)));
}
#if !HELIOS_INT8_VNNI
inline Ints pairs(Ints w, Ints a) {
  return _mm512_maddubs_epi16(w, a);
}
inline Ints add16(Ints a, Ints b) {
  return _mm512_add_epi16(a, b);
}
inline Ints add32(Ints a, Ints b) {
  return _mm512_add_epi32(a, b);
}
inline Ints widen_pairs(Ints a) {
  return _mm512_madd_epi16(a, _mm512_set1_epi16(1));
}
inline Ints flip(Ints a) {
  return _mm512_xor_si512(a, _mm512_set1_epi8(static_cast<char>(0x80)));
}
inline Ints magnitude(Ints a) {
  return _mm512_abs_epi8(a);
}
inline Ints with_sign(Ints a, Ints w) {
  return _mm512_mask_sub_epi8(a, _mm512_movepi8_mask(w), _mm512_setzero_si512(), a);
}
#endif
#elif HELIOS_INT8_BITS == 256
using Ints = __m256i;
using Floats = __m256;
inline Ints load_ints(const std::uint8_t* at) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at));
}
inline Ints broadcast(std::int32_t v) {
  return _mm256_set1_epi32(v);
}
inline Ints both(Ints a, Ints b) {
  return _mm256_and_si256(a, b);
}
inline Ints high_nibbles(Ints a, Ints low) {
  return _mm256_and_si256(_mm256_srli_epi16(a, 4), low);
}
inline Floats broadcast_float(float v) {
  return _mm256_set1_ps(v);
}
inline Floats load_floats(const float* at) {
  return _mm256_loadu_ps(at);
}
inline void store_floats(float* at, Floats v) {
  _mm256_storeu_ps(at, v);
}
inline Floats add(Floats a, Floats b) {
  return _mm256_add_ps(a, b);
}
inline Floats multiply(Floats a, Floats b) {
  return _mm256_mul_ps(a, b);
}
inline Floats multiply_add(Floats a, Floats b, Floats c) {
  return _mm256_fmadd_ps(a, b, c);
}
inline Floats to_floats(Ints a) {
  return _mm256_cvtepi32_ps(a);
}
inline Floats load_halves(const std::uint8_t* at) {
  return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(at)));
}
inline Ints pairs(Ints w, Ints a) {
  return _mm256_maddubs_epi16(w, a);
}
inline Ints add16(Ints a, Ints b) {
  return _mm256_add_epi16(a, b);
}
inline Ints add32(Ints a, Ints b) {
  return _mm256_add_epi32(a, b);
}
inline Ints widen_pairs(Ints a) {
  return _mm256_madd_epi16(a, _mm256_set1_epi16(1));
}
inline Ints flip(Ints a) {
  return _mm256_xor_si256(a, _mm256_set1_epi8(static_cast<char>(0x80)));
}
inline Ints magnitude(Ints a) {
  return _mm256_abs_epi8(a);
}
inline Ints with_sign(Ints a, Ints w) {
  return _mm256_sign_epi8(a, w);
}
#else
using Ints = __m128i;
using Floats = __m128;
inline Ints load_ints(const std::uint8_t* at) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
}
inline Ints broadcast(std::int32_t v) {
  return _mm_set1_epi32(v);
}
inline Ints both(Ints a, Ints b) {
  return _mm_and_si128(a, b);
}
inline Ints high_nibbles(Ints a, Ints low) {
  return _mm_and_si128(_mm_srli_epi16(a, 4), low);
}
inline Floats broadcast_float(float v) {
  return _mm_set1_ps(v);
}
inline Floats load_floats(const float* at) {
  return _mm_loadu_ps(at);
}
inline void store_floats(float* at, Floats v) {
  _mm_storeu_ps(at, v);
}
inline Floats add(Floats a, Floats b) {
  return _mm_add_ps(a, b);
}
inline Floats multiply(Floats a, Floats b) {
  return _mm_mul_ps(a, b);
}
inline Floats multiply_add(Floats a, Floats b, Floats c) {
  return _mm_add_ps(_mm_mul_ps(a, b), c);
}
inline Floats to_floats(Ints a) {
  return _mm_cvtepi32_ps(a);
}
inline Floats load_halves(const std::uint8_t* at) {  // no F16C here; scales are normal, subnormal or zero
  std::uint16_t h[4];
  std::memcpy(h, at, 8);
  return _mm_setr_ps(half_to_float(h[0]), half_to_float(h[1]), half_to_float(h[2]), half_to_float(h[3]));
}
inline Ints pairs(Ints w, Ints a) {
  return _mm_maddubs_epi16(w, a);
}
inline Ints add16(Ints a, Ints b) {
  return _mm_add_epi16(a, b);
}
inline Ints add32(Ints a, Ints b) {
  return _mm_add_epi32(a, b);
}
inline Ints widen_pairs(Ints a) {
  return _mm_madd_epi16(a, _mm_set1_epi16(1));
}
inline Ints flip(Ints a) {
  return _mm_xor_si128(a, _mm_set1_epi8(static_cast<char>(0x80)));
}
inline Ints magnitude(Ints a) {
  return _mm_abs_epi8(a);
}
inline Ints with_sign(Ints a, Ints w) {
  return _mm_sign_epi8(a, w);
}
#endif

constexpr int kLanes = HELIOS_INT8_BITS / 32;  // output rows of one vector
constexpr int kParts = 16 / kLanes;            // vectors of one panel

#if HELIOS_INT8_VNNI
struct ByteWeights {
  Ints w;
};
inline ByteWeights prepare(Ints w) {
  return {w};
}
inline Ints step4(Ints sum, Ints w, Ints a) {
  return _mm512_dpbusd_epi32(sum, w, a);
}
inline Ints finish4(Ints sum) {
  return sum;
}
inline Ints begin8(std::int32_t z) {
  return broadcast(z);
}  // the offset of 128 is gone before it is added
inline Ints step8(Ints sum, const ByteWeights& b, Ints a) {
  return _mm512_dpbusd_epi32(sum, b.w, a);
}
#else
struct ByteWeights {
  Ints w, absolute;
};
inline ByteWeights prepare(Ints w) {
  w = flip(w);
  return {w, magnitude(w)};
}
inline Ints step4(Ints sum, Ints w, Ints a) {
  return add16(sum, pairs(w, a));
}
inline Ints finish4(Ints sum) {
  return widen_pairs(sum);
}
inline Ints begin8(std::int32_t) {
  return broadcast(0);
}
inline Ints step8(Ints sum, const ByteWeights& b, Ints a) {
  return add32(sum, widen_pairs(pairs(b.absolute, with_sign(a, b.w))));
}
#endif

/// sum[m][u] = 32 columns of rows m (q: TileBlock::q or TileResidue::q) times a part of a block of panel u.
template <int MR, int U, bool kQ8>
__attribute__((always_inline)) inline void block_sums(const std::uint8_t* w, std::size_t unit,
                                                      const void* columns, const std::int32_t* z,
                                                      Ints (&sum)[MR][U]) {
  const auto* q = static_cast<const std::int32_t*>(columns);
  const Ints low = broadcast(0x0F0F0F0F);
#pragma GCC unroll 4
  for (int m = 0; m < MR; ++m) {
#pragma GCC unroll 2
    for (int u = 0; u < U; ++u) sum[m][u] = kQ8 ? begin8(z[m]) : broadcast(0);
  }
#pragma GCC unroll 4
  for (int j = 0; j < 4; ++j) {
    if constexpr (kQ8) {
#pragma GCC unroll 2
      for (int h = 0; h < 2; ++h) {
        ByteWeights v[U];
#pragma GCC unroll 2
        for (int u = 0; u < U; ++u)
          v[u] = prepare(load_ints(w + static_cast<std::size_t>(u) * unit + 128 * j + 64 * h));
#pragma GCC unroll 4
        for (int m = 0; m < MR; ++m) {
          const Ints a = broadcast(q[(2 * j + h) * 4 + m]);
#pragma GCC unroll 2
          for (int u = 0; u < U; ++u) sum[m][u] = step8(sum[m][u], v[u], a);
        }
      }
    } else {
      Ints v[2][U];
#pragma GCC unroll 2
      for (int u = 0; u < U; ++u) {
        const Ints x = load_ints(w + static_cast<std::size_t>(u) * unit + 64 * j);
        v[0][u] = both(x, low);
        v[1][u] = high_nibbles(x, low);
      }
#pragma GCC unroll 2
      for (int h = 0; h < 2; ++h) {
#pragma GCC unroll 4
        for (int m = 0; m < MR; ++m) {
          const Ints a = broadcast(q[(2 * j + h) * 4 + m]);
#pragma GCC unroll 2
          for (int u = 0; u < U; ++u) sum[m][u] = step4(sum[m][u], v[h][u], a);
        }
      }
    }
  }
}

/// f[m][u] = rows m of a tile times part `part` of panel u (unit bytes apart), over all blocks. Prefetches
/// `lines` cache lines a block from `ahead`. A row that is not fine gets exact zeros from its residue, so
/// the rows beside it do not change its bits.
template <int MR, int U, bool kQ8>
__attribute__((always_inline)) inline void micro(const std::uint8_t* w, std::size_t unit, int part,
                                                 std::int64_t blocks, const TileBlock* tile,
                                                 Floats (&f)[MR][U], const std::uint8_t* ahead, int lines) {
  constexpr std::size_t kBlock = kQ8 ? 544 : 320, kScales = kQ8 ? 512 : 256;
  const std::size_t bytes = static_cast<std::size_t>(part) * kLanes * 4;
  const auto* residue = reinterpret_cast<const TileResidue*>(tile + blocks);
  for (auto& row : f) {
    for (auto& v : row) v = broadcast_float(0.0F);
  }
  for (std::int64_t b = 0; b < blocks; ++b, w += kBlock, ++tile, ++residue) {
    for (int i = 0; i < lines; ++i, ahead += 64) __builtin_prefetch(ahead, 0, 3);
    std::int32_t fine = 0;
#pragma GCC unroll 4
    for (int m = 0; m < MR; ++m) fine |= tile->fine[m];
    Ints sum[MR][U];
    block_sums<MR, U, kQ8>(w + bytes, unit, tile->q, tile->z, sum);
#pragma GCC unroll 2
    for (int u = 0; u < U; ++u) {
      const std::uint8_t* scales = w + static_cast<std::size_t>(u) * unit + kScales + bytes / 2;
      const Floats scale = load_halves(scales);
      Floats minimum = scale;
      if constexpr (!kQ8) minimum = load_halves(scales + 32);
#pragma GCC unroll 4
      for (int m = 0; m < MR; ++m) {
        const Ints total = kQ8 ? sum[m][u] : finish4(sum[m][u]);
        f[m][u] = multiply_add(to_floats(total), multiply(scale, broadcast_float(tile->d[m])), f[m][u]);
        if constexpr (!kQ8) f[m][u] = multiply_add(minimum, broadcast_float(tile->s[m]), f[m][u]);
      }
    }
    if (fine == 0) [[likely]]
      continue;
    block_sums<MR, U, kQ8>(w + bytes, unit, residue->q, residue->z, sum);
#pragma GCC unroll 2
    for (int u = 0; u < U; ++u) {
      const Floats scale = load_halves(w + static_cast<std::size_t>(u) * unit + kScales + bytes / 2);
#pragma GCC unroll 4
      for (int m = 0; m < MR; ++m) {
        const Ints total = kQ8 ? sum[m][u] : finish4(sum[m][u]);
        const Floats step = broadcast_float(tile->fine[m] != 0 ? tile->d[m] / kResidueSteps : 0.0F);
        f[m][u] = multiply_add(to_floats(total), multiply(scale, step), f[m][u]);
      }
    }
  }
}

inline void store_result(const Projection& p, std::int64_t row, std::int64_t column, Floats value) {
  float* out = p.out + row * p.out_stride + column;
  const std::int64_t valid = p.w.rows - column;
  if (valid >= kLanes) {
    store_floats(out, p.accumulate ? add(load_floats(out), value) : value);
    return;
  }
  float lanes[kLanes];
  store_floats(lanes, value);
  for (std::int64_t i = 0; i < valid; ++i) out[i] = p.accumulate ? out[i] + lanes[i] : lanes[i];
}

template <int MR, int U, bool kQ8>
inline void tile_product(const Projection& p, std::int64_t row, std::int64_t panel, std::size_t panel_size,
                         const TileBlock* tile, const std::uint8_t* ahead, int lines) {
  const auto* w =
      reinterpret_cast<const std::uint8_t*>(p.w.data) + static_cast<std::size_t>(panel) * panel_size;
  for (int part = 0; part < kParts; ++part) {
    Floats f[MR][U];
    micro<MR, U, kQ8>(w, panel_size, part, p.w.cols / 32, tile, f, ahead, part == 0 ? lines : 0);
    for (int m = 0; m < MR; ++m) {
      for (int u = 0; u < U; ++u) store_result(p, row + m, (panel + u) * 16 + part * kLanes, f[m][u]);
    }
  }
}

/// All rows times U panels. The next panels are prefetched a little in each tile's pass: without it the
/// hardware's streamer stalls while a panel is used again from L1, and 4 to 32 rows run at half speed.
template <int U, bool kQ8>
inline void panel_products(const Projection& p, const Activation& in, std::int64_t rows, std::int64_t panel) {
  const std::size_t panel_size = panel_bytes(p.w.type, p.w.cols);
  const std::int64_t blocks = p.w.cols / 32, tiles = (rows + 3) / 4;
  const auto* next =
      reinterpret_cast<const std::uint8_t*>(p.w.data) + static_cast<std::size_t>(panel + U) * panel_size;
  const std::size_t group_lines = U * panel_size / 64;
  const int lines = static_cast<int>((static_cast<std::int64_t>(group_lines) / blocks + tiles) / tiles);
  for (std::int64_t t = 0; t < tiles; ++t) {
    const TileBlock* tile = tile_blocks(in, 4 * t);
    const std::size_t offset = static_cast<std::size_t>(t * blocks) * static_cast<std::size_t>(lines) * 64;
    const int now = offset < group_lines * 64 ? lines : 0;
    switch (std::min<std::int64_t>(rows - 4 * t, 4)) {
      case 1:
        tile_product<1, U, kQ8>(p, 4 * t, panel, panel_size, tile, next + offset, now);
        break;
      case 2:
        tile_product<2, U, kQ8>(p, 4 * t, panel, panel_size, tile, next + offset, now);
        break;
      case 3:
        tile_product<3, U, kQ8>(p, 4 * t, panel, panel_size, tile, next + offset, now);
        break;
      default:
        tile_product<4, U, kQ8>(p, 4 * t, panel, panel_size, tile, next + offset, now);
        break;
    }
  }
}

template <bool kQ8>
inline void range_products(const Projection& p, const Activation& in, std::int64_t rows, std::int64_t begin,
                           std::int64_t end) {
  if (rows == 1) {  // bandwidth bound: linear, about 12 KB ahead
    const std::size_t panel_size = panel_bytes(p.w.type, p.w.cols);
    const TileBlock* tile = tile_blocks(in, 0);
    for (std::int64_t panel = begin; panel < end; ++panel) {
      const auto* w =
          reinterpret_cast<const std::uint8_t*>(p.w.data) + static_cast<std::size_t>(panel) * panel_size;
      tile_product<1, 1, kQ8>(p, 0, panel, panel_size, tile, w + 12'288, kQ8 ? 9 : 5);
    }
    return;
  }
  constexpr int kUnits = HELIOS_INT8_BITS == 512 ? 2 : 1;  // two panels spill the 16 registers of AVX2
  std::int64_t panel = begin;
  for (; panel + kUnits <= end; panel += kUnits) panel_products<kUnits, kQ8>(p, in, rows, panel);
  for (; panel < end; ++panel) panel_products<1, kQ8>(p, in, rows, panel);
}

/// Panels [begin, end) of a quantised matrix.
void int8_panels(const Projection& p, const Activation& in, std::int64_t rows, std::int64_t begin,
                 std::int64_t end) {
  if (p.w.type == DataType::q8_0) {
    range_products<true>(p, in, rows, begin, end);
  } else {
    range_products<false>(p, in, rows, begin, end);
  }
}
