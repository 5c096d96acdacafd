// Products of int8 activations and quantised panels, in raw intrinsics. Included once per instruction set
// inside a namespace whose target attributes are set: HELIOS_INT8_BITS is 128, 256 or 512, HELIOS_INT8_VNNI 0
// or 1. No include guard: see mat_mul_host.cpp.
//
// The integer part of a block is exact, and the float part adds blocks in the order of columns, so a row's
// result is the same in every shape of micro-kernel. Without VNNI: maddubs pairs in int16; codes of
// 4, 5 and 6 bits fit it for 8, 4 and 2 groups of 4 columns (16 * 15 * 127, 8 * 31 * 127, 4 * 63 * 127). Q8:
// |w| * sign(a, w), at most 2 * 128 * 127, fits for one group.

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
inline Ints either(Ints a, Ints b) {
  return _mm512_or_si512(a, b);
}
/// 16-bit lanes, to the left by `by` bits, or to the right where it is negative.
__attribute__((always_inline)) inline Ints shift(Ints a, int by) {
  return by >= 0 ? _mm512_slli_epi16(a, by) : _mm512_srli_epi16(a, -by);
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
inline Ints either(Ints a, Ints b) {
  return _mm256_or_si256(a, b);
}
/// 16-bit lanes, to the left by `by` bits, or to the right where it is negative.
__attribute__((always_inline)) inline Ints shift(Ints a, int by) {
  return by >= 0 ? _mm256_slli_epi16(a, by) : _mm256_srli_epi16(a, -by);
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
inline Ints either(Ints a, Ints b) {
  return _mm_or_si128(a, b);
}
/// 16-bit lanes, to the left by `by` bits, or to the right where it is negative.
__attribute__((always_inline)) inline Ints shift(Ints a, int by) {
  return by >= 0 ? _mm_slli_epi16(a, by) : _mm_srli_epi16(a, -by);
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

/// How a panel type's blocks of 32 columns are read: see gpu/matrix.hpp.
template <DataType kType>
struct Layout {
  static constexpr bool kBytes = kType == DataType::q8_0;
  static constexpr bool kMinimum = kType == DataType::q4_1 || kType == DataType::q5_1;
  static constexpr int kHalves = kType == DataType::q6_k ? 2 : 1;  // halves of a block with a scale each
  static constexpr int kGroups = 8 / kHalves;                      // of 4 columns in a half or whole
  static constexpr int kFit = kType == DataType::q4_1   ? 8        // groups whose sums fit int16
                              : kType == DataType::q5_1 ? 4
                                                        : 2;
  static constexpr std::size_t kBlock = panel_bytes(kType, 32);
  static constexpr std::size_t kScales = kBlock - (kBytes ? 32 : 64);
};

#if HELIOS_INT8_VNNI
struct ByteWeights {
  Ints w;
};
inline ByteWeights prepare(Ints w) {
  return {w};
}
inline Ints begin8(std::int32_t z) {
  return broadcast(z);
}  // the offset of 128 is gone before it is added
inline Ints step8(Ints sum, const ByteWeights& b, Ints a) {
  return _mm512_dpbusd_epi32(sum, b.w, a);
}
// A run of groups is added to the sum itself.
inline Ints begin_run(Ints sum) {
  return sum;
}
inline Ints step(Ints run, Ints w, Ints a) {
  return _mm512_dpbusd_epi32(run, w, a);
}
inline Ints end_run(Ints, Ints run) {
  return run;
}
#else
struct ByteWeights {
  Ints w, absolute;
};
inline ByteWeights prepare(Ints w) {
  w = flip(w);
  return {w, magnitude(w)};
}
inline Ints begin8(std::int32_t) {
  return broadcast(0);
}
inline Ints step8(Ints sum, const ByteWeights& b, Ints a) {
  return add32(sum, widen_pairs(pairs(b.absolute, with_sign(a, b.w))));
}
// A run of groups is added up in int16.
inline Ints begin_run(Ints) {
  return broadcast(0);
}
inline Ints step(Ints run, Ints w, Ints a) {
  return add16(run, pairs(w, a));
}
inline Ints end_run(Ints sum, Ints run) {
  return add32(sum, widen_pairs(run));
}
#endif

/// Codes of 4 to 6 bits of group g, from a part of a block.
template <DataType kType>
__attribute__((always_inline)) inline Ints codes(const std::uint8_t* w, int g) {
  const Ints low = broadcast(0x0F0F0F0F), nibbles = load_ints(w + 64 * (g / 2));
  const Ints q = g % 2 == 0 ? both(nibbles, low) : high_nibbles(nibbles, low);
  if constexpr (kType == DataType::q5_1) {
    return either(q, both(shift(load_ints(w + 256), 4 - g), broadcast(0x10101010)));
  } else if constexpr (kType == DataType::q6_k) {
    return either(q, both(shift(load_ints(w + 256 + 64 * (g / 4)), 4 - 2 * (g % 4)), broadcast(0x30303030)));
  } else {
    return q;
  }
}

/// sum[m][u] = part `half` of 32 columns of rows m (TileBlock or TileResidue) times the same of panel u.
template <int MR, int U, DataType kType, class Tile>
__attribute__((always_inline)) inline void block_sums(const std::uint8_t* w, std::size_t unit,
                                                      const Tile& tile, int half, Ints (&sum)[MR][U]) {
  using L = Layout<kType>;
  const auto* q = reinterpret_cast<const std::int32_t*>(tile.q);
#pragma GCC unroll 4
  for (int m = 0; m < MR; ++m) {
    Ints start = broadcast(0);
    if constexpr (L::kBytes) start = begin8(tile.z[m]);
    if constexpr (kType == DataType::q6_k) {
      start = broadcast(half == 0 ? tile.z_first[m] : tile.z[m] / 4 - tile.z_first[m]);
    }
#pragma GCC unroll 2
    for (int u = 0; u < U; ++u) sum[m][u] = start;
  }
  if constexpr (L::kBytes) {
#pragma GCC unroll 8
    for (int g = 0; g < 8; ++g) {
      ByteWeights v[U];
#pragma GCC unroll 2
      for (int u = 0; u < U; ++u) v[u] = prepare(load_ints(w + static_cast<std::size_t>(u) * unit + 64 * g));
#pragma GCC unroll 4
      for (int m = 0; m < MR; ++m) {
        const Ints a = broadcast(q[g * kTileRows + m]);
#pragma GCC unroll 2
        for (int u = 0; u < U; ++u) sum[m][u] = step8(sum[m][u], v[u], a);
      }
    }
  } else {
#pragma GCC unroll 4
    for (int run = 0; run < L::kGroups; run += L::kFit) {
      Ints part[MR][U];
#pragma GCC unroll 4
      for (int m = 0; m < MR; ++m) {
#pragma GCC unroll 2
        for (int u = 0; u < U; ++u) part[m][u] = begin_run(sum[m][u]);
      }
#pragma GCC unroll 8
      for (int i = 0; i < L::kFit; ++i) {
        const int g = half * L::kGroups + run + i;
        Ints v[U];
#pragma GCC unroll 2
        for (int u = 0; u < U; ++u) v[u] = codes<kType>(w + static_cast<std::size_t>(u) * unit, g);
#pragma GCC unroll 4
        for (int m = 0; m < MR; ++m) {
          const Ints a = broadcast(q[g * kTileRows + m]);
#pragma GCC unroll 2
          for (int u = 0; u < U; ++u) part[m][u] = step(part[m][u], v[u], a);
        }
      }
#pragma GCC unroll 4
      for (int m = 0; m < MR; ++m) {
#pragma GCC unroll 2
        for (int u = 0; u < U; ++u) sum[m][u] = end_run(sum[m][u], part[m][u]);
      }
    }
  }
}

/// f[m][u] = rows m of a tile times part `part` of panel u (unit bytes apart), over all blocks. Prefetches
/// `lines` cache lines a block from `ahead`. A row that is not fine gets exact zeros from its residue, so
/// the rows beside it do not change its bits.
template <int MR, int U, DataType kType>
__attribute__((always_inline)) inline void micro(const std::uint8_t* w, std::size_t unit, int part,
                                                 std::int64_t blocks, const TileBlock* tile,
                                                 Floats (&f)[MR][U], const std::uint8_t* ahead, int lines) {
  using L = Layout<kType>;
  const std::size_t bytes = static_cast<std::size_t>(part) * kLanes * 4;
  const auto* residue = reinterpret_cast<const TileResidue*>(tile + blocks);
  for (auto& row : f) {
    for (auto& v : row) v = broadcast_float(0.0F);
  }
  for (std::int64_t b = 0; b < blocks; ++b, w += L::kBlock, ++tile, ++residue) {
    for (int i = 0; i < lines; ++i, ahead += 64) __builtin_prefetch(ahead, 0, 3);
    std::int32_t fine = 0;
#pragma GCC unroll 4
    for (int m = 0; m < MR; ++m) fine |= tile->fine[m];
    const std::uint8_t* scales = w + L::kScales + bytes / 2;
    Ints sum[MR][U];
#pragma GCC unroll 2
    for (int half = 0; half < L::kHalves; ++half, scales += 32) {
      block_sums<MR, U, kType>(w + bytes, unit, *tile, half, sum);
#pragma GCC unroll 2
      for (int u = 0; u < U; ++u) {
        const Floats scale = load_halves(scales + static_cast<std::size_t>(u) * unit);
        Floats minimum = scale;
        if constexpr (L::kMinimum) minimum = load_halves(scales + static_cast<std::size_t>(u) * unit + 32);
#pragma GCC unroll 4
        for (int m = 0; m < MR; ++m) {
          const Floats step = multiply(scale, broadcast_float(tile->d[m]));
          f[m][u] = multiply_add(to_floats(sum[m][u]), step, f[m][u]);
          if constexpr (L::kMinimum) f[m][u] = multiply_add(minimum, broadcast_float(tile->s[m]), f[m][u]);
        }
      }
    }
    if (fine == 0) [[likely]]
      continue;
    scales = w + L::kScales + bytes / 2;
#pragma GCC unroll 2
    for (int half = 0; half < L::kHalves; ++half, scales += 32) {
      block_sums<MR, U, kType>(w + bytes, unit, *residue, half, sum);
#pragma GCC unroll 2
      for (int u = 0; u < U; ++u) {
        const Floats scale = load_halves(scales + static_cast<std::size_t>(u) * unit);
#pragma GCC unroll 4
        for (int m = 0; m < MR; ++m) {
          const Floats step = broadcast_float(tile->fine[m] != 0 ? tile->d[m] / kResidueSteps : 0.0F);
          f[m][u] = multiply_add(to_floats(sum[m][u]), multiply(scale, step), f[m][u]);
        }
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

template <int MR, int U, DataType kType>
inline void tile_product(const Projection& p, std::int64_t row, std::int64_t panel, std::size_t panel_size,
                         const TileBlock* tile, const std::uint8_t* ahead, int lines) {
  const auto* w =
      reinterpret_cast<const std::uint8_t*>(p.w.data) + static_cast<std::size_t>(panel) * panel_size;
  for (int part = 0; part < kParts; ++part) {
    Floats f[MR][U];
    micro<MR, U, kType>(w, panel_size, part, p.w.cols / 32, tile, f, ahead, part == 0 ? lines : 0);
    for (int m = 0; m < MR; ++m) {
      for (int u = 0; u < U; ++u) store_result(p, row + m, (panel + u) * 16 + part * kLanes, f[m][u]);
    }
  }
}

/// All rows times U panels. The next panels are prefetched a little in each tile's pass: without it the
/// hardware's streamer stalls while a panel is used again from L1, and 4 to 32 rows run at half speed.
template <int U, DataType kType>
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
        tile_product<1, U, kType>(p, 4 * t, panel, panel_size, tile, next + offset, now);
        break;
      case 2:
        tile_product<2, U, kType>(p, 4 * t, panel, panel_size, tile, next + offset, now);
        break;
      case 3:
        tile_product<3, U, kType>(p, 4 * t, panel, panel_size, tile, next + offset, now);
        break;
      default:
        tile_product<4, U, kType>(p, 4 * t, panel, panel_size, tile, next + offset, now);
        break;
    }
  }
}

template <DataType kType>
inline void range_products(const Projection& p, const Activation& in, std::int64_t rows, std::int64_t begin,
                           std::int64_t end) {
  if (rows == 1) {  // bandwidth bound: linear, about 12 KB ahead
    const std::size_t panel_size = panel_bytes(p.w.type, p.w.cols);
    const TileBlock* tile = tile_blocks(in, 0);
    constexpr int kLines = static_cast<int>((Layout<kType>::kBlock + 63) / 64);
    for (std::int64_t panel = begin; panel < end; ++panel) {
      const auto* w =
          reinterpret_cast<const std::uint8_t*>(p.w.data) + static_cast<std::size_t>(panel) * panel_size;
      tile_product<1, 1, kType>(p, 0, panel, panel_size, tile, w + 12'288, kLines);
    }
    return;
  }
  constexpr int kUnits = HELIOS_INT8_BITS == 512 ? 2 : 1;  // two panels spill the 16 registers of AVX2
  std::int64_t panel = begin;
  for (; panel + kUnits <= end; panel += kUnits) panel_products<kUnits, kType>(p, in, rows, panel);
  for (; panel < end; ++panel) panel_products<1, kType>(p, in, rows, panel);
}

/// Panels [begin, end) of a quantised matrix.
void int8_panels(const Projection& p, const Activation& in, std::int64_t rows, std::int64_t begin,
                 std::int64_t end) {
  switch (p.w.type) {
    case DataType::q8_0:
      return range_products<DataType::q8_0>(p, in, rows, begin, end);
    case DataType::q5_1:
      return range_products<DataType::q5_1>(p, in, rows, begin, end);
    case DataType::q6_k:
      return range_products<DataType::q6_k>(p, in, rows, begin, end);
    default:
      return range_products<DataType::q4_1>(p, in, rows, begin, end);
  }
}
