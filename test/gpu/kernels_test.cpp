#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <limits>
#include "test/gpu/result_text.hpp"

#include "test/gpu/kernel_cases.hpp"

namespace helios::gpu::test {

namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

/// Error of a product by type: float sums, or activations rounded to 8 bits a block.
double product_tolerance(DataType type) {
  return is_quantised(type) ? 2e-2 : 1e-5;
}

void pack(const KernelTable& kernels, const std::vector<float>& x, std::int64_t rows, Input& in) {
  run(kernels, NormPack{.x = x.data(), .rows = rows, .cols = in.view.cols, .out = in.view});
}

/// Row `row` as the tiles keep it.
std::vector<float> tile_values(const Activation& a, std::int64_t row) {
  const TileBlock* blocks = tile_blocks(a, row);
  const TileResidue* residues = tile_residues(a, row);
  const auto lane = static_cast<std::size_t>(row % kTileRows);
  std::vector<float> out;
  for (std::int64_t c = 0; c < a.cols; ++c) {
    const auto j = static_cast<std::size_t>(c % 32 / 4), k = static_cast<std::size_t>(c % 4);
    const float residue = static_cast<float>(residues[c / 32].q[j][lane][k]) / kResidueSteps;
    out.push_back(blocks[c / 32].d[lane] * (static_cast<float>(blocks[c / 32].q[j][lane][k]) + residue));
  }
  return out;
}

std::vector<float> product(const KernelTable& kernels, const Matrix& w, const std::vector<float>& x,
                           std::int64_t rows) {
  Input in(rows, w.cols);
  pack(kernels, x, rows, in);
  std::vector<float> out(static_cast<std::size_t>(rows * w.rows), 7.0F);
  MatMul op{.in = in.view, .rows = rows};
  op.add(w, out.data(), w.rows);
  run(kernels, op);
  return out;
}

}  // namespace

TEST_CASE("half: every value round-trips, rounding is to nearest even", "[gpu]") {
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const float value = half_to_float(half);
    if (std::isnan(value)) {
      CHECK(std::isnan(half_to_float(float_to_half(value))));
    } else if (float_to_half(value) != half) {
      FAIL("half " << bits);
    }
  }
  CHECK(float_to_half(1.0F + 0x1p-11F) == 0x3C00);  // a tie goes to even
  CHECK(float_to_half(1.0F + 3 * 0x1p-11F) == 0x3C02);
  CHECK(float_to_half(65519.0F) == 0x7BFF);
  CHECK(float_to_half(65520.0F) == 0x7C00);
  CHECK(bfloat_to_float(float_to_bfloat(1.5F)) == 1.5F);
}

TEST_CASE("panels: unpack_row inverts pack_panels for GGUF's layouts", "[gpu]") {
  // One Q4_0 block by hand: d = 2, nibble k = k % 16 in the low half, 15 - k % 16 in the high half.
  std::vector<std::byte> block(18);
  const std::uint16_t d = float_to_half(2.0F);
  std::memcpy(block.data(), &d, 2);
  for (unsigned k = 0; k < 16; ++k) block[2 + k] = static_cast<std::byte>(k | (15 - k) << 4);
  Memory panels(packed_matrix_bytes(DataType::q4_0, 1, 32));
  pack_panels(DataType::q4_0, 1, 32, block.data(), panels.data());
  float out[32];
  unpack_row({DataType::q4_1, 1, 32, panels.data()}, 0, out);
  for (int k = 0; k < 32; ++k) CHECK(out[k] == 2.0F * static_cast<float>((k < 16 ? k : 31 - k) - 8));
  for (const DataType type : kTypes) {
    CHECK(packed_matrix_bytes(type, 17, 256) == 2 * panel_bytes(packed_type(type), 256));
  }
}

TEST_CASE("MatMul: fast bodies equal the reference within the type's tolerance", "[gpu]") {
  for (const KernelTable* kernels : all_kernels()) {
    for (const DataType type : kTypes) {
      for (const auto& [rows, cols] :
           {std::pair<int, int>{1, 32}, {15, 64}, {33, 576}, {100, 256}, {48, 1536}}) {
        if (cols % block_elements(type) != 0) continue;
        const Weights w(type, rows, cols, 5);
        for (const int m : {1, 3, 6}) {
          INFO(kernels->isa << ' ' << to_string(type) << ' ' << rows << 'x' << cols << " rows " << m);
          const auto x = random_floats(static_cast<std::size_t>(m * cols), 11);
          const auto want = product(reference_kernels(), w.matrix, x, m);
          const auto got = product(*kernels, w.matrix, x, m);
          CHECK(relative_error(got, want, typical_product(w.matrix, x)) < product_tolerance(type));
        }
      }
    }
  }
}

TEST_CASE("MatMul: a row's bits do not depend on its batch or its chunk", "[gpu]") {
  constexpr int kCols = 768, kRows = 83, kBatch = 37;
  auto x = random_floats(kBatch * kCols, 3);
  for (std::size_t row = 0; row < kBatch; row += 3) x[row * kCols + 7 * row] *= 40.0F;  // fine beside plain
  for (const KernelTable* kernels : all_kernels()) {
    for (const DataType type : kTypes) {
      INFO(kernels->isa << ' ' << to_string(type));
      const Weights w(type, kRows, kCols, 9);
      const auto together = product(*kernels, w.matrix, x, kBatch);
      for (const int row : {0, 1, 18, 35, 36}) {
        const std::vector<float> one(x.begin() + row * kCols, x.begin() + (row + 1) * kCols);
        const auto alone = product(*kernels, w.matrix, one, 1);
        CHECK(same_bits(alone.data(), together.data() + row * kRows, kRows));
      }
    }
  }
}

TEST_CASE("MatMul: a row with a few large columns keeps its other columns", "[gpu]") {
  constexpr int kCols = 768;
  for (const DataType type : {DataType::q4_1, DataType::q8_0, DataType::q5_1, DataType::q6_k}) {
    const Weights w(type, 40, kCols, 5);
    for (const int m : {1, 4, 6}) {
      auto x = random_floats(static_cast<std::size_t>(m * kCols), 11);
      for (int i = 0; i < m; ++i) x[static_cast<std::size_t>(i * kCols + 100)] = 200.0F;
      std::vector<float> spike(x.size());
      for (int i = 0; i < m; ++i) spike[static_cast<std::size_t>(i * kCols + 100)] = 200.0F;
      // What is left after the spike's part is taken off, against the size of that rest: the one plane's
      // error is 200 / 254 a column of its block, as large as the columns themselves.
      const auto rest = [&](const KernelTable& kernels) {
        auto out = product(kernels, w.matrix, x, m);
        const auto of_spike = product(reference_kernels(), w.matrix, spike, m);
        for (std::size_t i = 0; i < out.size(); ++i) out[i] -= of_spike[i];
        return out;
      };
      const auto want = rest(reference_kernels());
      for (const KernelTable* kernels : all_kernels()) {
        INFO(kernels->isa << ' ' << to_string(type) << " rows " << m);
        CHECK(relative_error(rest(*kernels), want) < product_tolerance(type));
      }
    }
  }
}

TEST_CASE("MatMul: fused projections, strides and accumulation", "[gpu]") {
  const Weights a(DataType::q4_1, 40, 64, 1), b(DataType::q8_0, 17, 64, 2);
  const auto x = random_floats(5 * 64, 4);
  for (const KernelTable* kernels : all_kernels()) {
    INFO(kernels->isa);
    Input in(5, 64);
    pack(*kernels, x, 5, in);
    std::vector<float> out(5 * 60, 1.0F);
    MatMul op{.in = in.view, .rows = 5};
    op.add(a.matrix, out.data(), 60, true);
    op.add(b.matrix, out.data() + 41, 60);
    run(*kernels, op);
    const auto first = product(*kernels, a.matrix, x, 5), second = product(*kernels, b.matrix, x, 5);
    for (int i = 0; i < 5; ++i) {
      CHECK(out[static_cast<std::size_t>(i * 60)] == 1.0F + first[static_cast<std::size_t>(i * 40)]);
      CHECK(out[static_cast<std::size_t>(i * 60 + 40)] == 1.0F);  // between the two: untouched
      CHECK(same_bits(&out[static_cast<std::size_t>(i * 60 + 41)], &second[static_cast<std::size_t>(i * 17)],
                      17));
    }
  }
}

TEST_CASE("MatMul, NormPack, SiluMulPack: a NaN or infinite row fails alone", "[gpu]") {
  const Weights w(DataType::q4_1, 32, 64, 1);
  for (const KernelTable* kernels : all_kernels()) {
    for (const float poison : {kNan, std::numeric_limits<float>::infinity()}) {
      auto x = random_floats(6 * 64, 4);
      const auto clean = product(*kernels, w.matrix, x, 6);
      x[2 * 64 + 40] = poison;
      const auto out = product(*kernels, w.matrix, x, 6);
      for (int i = 0; i < 6; ++i) {
        INFO(kernels->isa << " row " << i);
        if (i == 2) {
          CHECK_FALSE(std::isfinite(out[static_cast<std::size_t>(i * 32)]));
        } else {
          CHECK(same_bits(&out[static_cast<std::size_t>(i * 32)], &clean[static_cast<std::size_t>(i * 32)],
                          32));
        }
      }
    }
  }
}

TEST_CASE("NormPack and SiluMulPack: floats and int8 tiles agree with the reference", "[gpu]") {
  for (const int cols : {32, 40, 576, 1536}) {
    const auto x = random_floats(static_cast<std::size_t>(9 * cols), 1, 3.0F);
    const auto weight = random_floats(static_cast<std::size_t>(cols), 2);
    const std::vector<std::int32_t> index{8, 0, 3};
    for (const KernelTable* kernels : all_kernels()) {
      INFO(kernels->isa << " cols " << cols);
      Input want(3, cols), got(3, cols);
      NormPack op{.x = x.data(),
                  .weight = weight.data(),
                  .rows = 3,
                  .cols = cols,
                  .out = want.view,
                  .row_index = index.data()};
      run_reference(op);
      op.out = got.view;
      run(*kernels, op);
      const auto n = static_cast<std::size_t>(3 * cols);
      CHECK(relative_error({got.view.floats(), got.view.floats() + n},
                           {want.view.floats(), want.view.floats() + n}) < 1e-6);
      SiluMulPack silu{.gate = x.data(),
                       .up = x.data() + cols,
                       .stride = 2 * cols,
                       .rows = 3,
                       .cols = cols,
                       .out = want.view};
      run_reference(silu);
      silu.out = got.view;
      run(*kernels, silu);
      CHECK(relative_error({got.view.floats(), got.view.floats() + n},
                           {want.view.floats(), want.view.floats() + n}) < 1e-6);
      if (cols % 32 == 0) {
        const auto from_got = tile_values(got.view, 1), from_want = tile_values(want.view, 1);
        CHECK(relative_error(from_got, from_want) < 1.0 / 127);  // a rounding may fall the other way
      }
    }
  }
}

namespace {

/// Sequences of different lengths in shuffled blocks.
struct Cache {
  Cache(DataType type, int tokens_per_block, int kv_heads, int head_dim, int sequences, int blocks_each)
      : memory(kv_block_bytes(type, tokens_per_block, kv_heads, head_dim) *
               static_cast<std::size_t>(sequences * blocks_each)) {
    for (int i = 0; i < sequences * blocks_each; ++i)
      tables.push_back((i * 7 + 3) % (sequences * blocks_each));
    view = {memory.data(),    type,
            tokens_per_block, kv_heads,
            head_dim,         tables.data(),
            blocks_each,      kv_block_bytes(type, tokens_per_block, kv_heads, head_dim)};
  }
  Memory memory;
  std::vector<std::int32_t> tables;
  KvLayerView view;
};

}  // namespace

TEST_CASE("NormPack of a layer norm and ReluPack agree with the reference", "[gpu]") {
  for (const int cols : {1, 7, 32, 40, 576}) {
    auto x = random_floats(static_cast<std::size_t>(4 * cols), 1, 3.0F);
    for (int c = 0; c < cols; ++c) x[static_cast<std::size_t>(3 * cols + c)] += 1000.0F;  // far from 0
    const auto weight = random_floats(static_cast<std::size_t>(cols), 2);
    const auto bias = random_floats(static_cast<std::size_t>(cols), 3);
    const std::vector<std::int32_t> index{2, 0, 3};
    for (const KernelTable* kernels : all_kernels()) {
      for (const float* with : {static_cast<const float*>(nullptr), bias.data()}) {
        INFO(kernels->isa << " cols " << cols << (with != nullptr ? " with bias" : ""));
        Input want(3, cols), got(3, cols);
        const auto n = static_cast<std::size_t>(3 * cols);
        const auto floats = [n](const Input& in) {
          return std::vector<float>(in.view.floats(), in.view.floats() + n);
        };
        NormPack norm{.x = x.data(),
                      .weight = weight.data(),
                      .rows = 3,
                      .cols = cols,
                      .out = want.view,
                      .row_index = index.data(),
                      .kind = NormPack::Kind::layer,
                      .bias = with};
        REQUIRE(validate(norm));
        run_reference(norm);
        norm.out = got.view;
        run(*kernels, norm);
        CHECK(relative_error(floats(got), floats(want)) < 1e-4);  // the row at 1000 keeps 4 digits less
        ReluPack relu{.x = x.data(), .bias = with, .rows = 3, .cols = cols, .out = want.view};
        run_reference(relu);
        relu.out = got.view;
        run(*kernels, relu);
        CHECK(floats(got) == floats(want));
        if (cols % 32 == 0) {
          CHECK(relative_error(tile_values(got.view, 1), tile_values(want.view, 1)) < 1.0 / 127);
        }
        auto poisoned = x;
        poisoned[0] = kNan;
        relu.x = poisoned.data();
        run(*kernels, relu);
        CHECK(std::isnan(got.view.floats()[0]));
      }
    }
  }
  Input in(1, 32);
  const auto bias = random_floats(32, 3);
  CHECK_FALSE(validate(NormPack{.rows = 1, .cols = 32, .out = in.view, .bias = bias.data()}));
}

TEST_CASE("AddPositions: a row of the table by position; none gives NaN", "[gpu]") {
  constexpr int kCols = 21;
  const auto x = random_floats(3 * kCols, 1), table = random_floats(6 * kCols, 2);
  const std::vector<RowMeta> meta{{0, 0}, {3, 1}, {4, 0}};
  for (const KernelTable* kernels : all_kernels()) {
    INFO(kernels->isa);
    auto out = x;
    run(*kernels, AddPositions{.x = out.data(),
                               .table = table.data(),
                               .meta = meta.data(),
                               .rows = 3,
                               .cols = kCols,
                               .table_rows = 6,
                               .offset = 2});
    for (std::size_t c = 0; c < kCols; ++c) {
      CHECK(out[c] == x[c] + table[2 * kCols + c]);
      CHECK(out[kCols + c] == x[kCols + c] + table[5 * kCols + c]);
      CHECK(std::isnan(out[2 * kCols + c]));
    }
  }
}

TEST_CASE("Rope: factors divide a pair's frequency, and the table of turns follows them", "[gpu]") {
  constexpr int kDim = 8;
  const std::vector<float> mild{1.0F, 2.0F, 4.0F, 8.0F}, strong{3.0F, 9.0F, 27.0F, 81.0F};
  const std::vector<RowMeta> meta{{5, 0}};
  const auto k0 = random_floats(kDim, 1), v = random_floats(kDim, 2);
  for (const KernelTable* kernels : all_kernels()) {
    for (const float* factors : {static_cast<const float*>(nullptr), mild.data(), strong.data()}) {
      INFO(kernels->isa);
      Cache cache(DataType::f32, 8, 1, kDim, 1, 1);
      auto k = k0;
      run(*kernels, RopeKvWrite{.k = k.data(),
                                .v = v.data(),
                                .k_stride = kDim,
                                .v_stride = kDim,
                                .rows = 1,
                                .rope = {.dims = kDim, .interleaved = false, .factors = factors},
                                .meta = meta.data(),
                                .kv = cache.view});
      for (std::size_t i = 0; i < kDim / 2; ++i) {
        const double angle = 5.0 * std::pow(10000.0, -2.0 * static_cast<double>(i) / kDim) /
                             (factors != nullptr ? double{factors[i]} : 1.0);
        const double want = double{k0[i]} * std::cos(angle) - double{k0[i + 4]} * std::sin(angle);
        CHECK(std::abs(double{k[i]} - want) < 1e-6);
      }
    }
  }
}

TEST_CASE("Embed: rows of every type; an id outside gives NaN", "[gpu]") {
  for (const DataType type : kTypes) {
    const Weights w(type, 19, 256, 6);
    const std::vector<std::int32_t> ids{18, 0, -1, 19};
    for (const KernelTable* kernels : all_kernels()) {
      INFO(kernels->isa << ' ' << to_string(type));
      std::vector<float> out(4 * 256);
      run(*kernels, Embed{w.matrix, ids.data(), 4, out.data()});
      std::vector<float> want(256);
      unpack_row(w.matrix, 18, want.data());
      CHECK(same_bits(out.data(), want.data(), 256));
      CHECK(std::isnan(out[2 * 256]));
      CHECK(std::isnan(out[3 * 256 + 255]));
    }
  }
}

TEST_CASE("RopeKvWrite and Attention over paged KV", "[gpu]") {
  constexpr int kHeads = 9, kKvHeads = 3, kPositions = 150;
  for (const DataType type : {DataType::f32, DataType::f16}) {
    for (const int dim : {64, 20}) {
      for (const bool interleaved : {true, false}) {
        const int q_size = kHeads * dim, k_size = kKvHeads * dim;
        std::vector<RowMeta> meta;
        for (int p = 0; p < kPositions; ++p)
          meta.push_back({p, p % 2});  // two sequences, each with every other position
        for (int p = 0; p < kPositions; ++p) meta.push_back({p, 1 - p % 2});
        const auto rows = static_cast<std::int64_t>(meta.size());
        const auto q0 = random_floats(static_cast<std::size_t>(rows * q_size), 1);
        const auto k0 = random_floats(static_cast<std::size_t>(rows * k_size), 2);
        const auto v0 = random_floats(static_cast<std::size_t>(rows * k_size), 3);
        std::vector<float> want;
        for (const KernelTable* kernels : all_kernels()) {
          INFO(kernels->isa << ' ' << to_string(type) << " dim " << dim << " interleaved " << interleaved);
          Cache cache(type, 16, kKvHeads, dim, 2, 10);
          auto q = q0, k = k0;
          run(*kernels, RopeKvWrite{.q = q.data(),
                                    .k = k.data(),
                                    .v = v0.data(),
                                    .q_stride = q_size,
                                    .k_stride = k_size,
                                    .v_stride = k_size,
                                    .rows = rows,
                                    .heads = kHeads,
                                    .rope = {.dims = dim, .freq_base = 100000.0F, .interleaved = interleaved},
                                    .meta = meta.data(),
                                    .kv = cache.view});
          std::vector<float> out(q.size());
          Attention op{.q = q.data(),
                       .q_stride = q_size,
                       .rows = rows,
                       .heads = kHeads,
                       .scale = 1.0F / std::sqrt(static_cast<float>(dim)),
                       .meta = meta.data(),
                       .kv = cache.view,
                       .out = out.data(),
                       .out_stride = q_size};
          run(*kernels, op);
          if (want.empty()) want = out;
          CHECK(relative_error(out, want) < (type == DataType::f16 ? 1e-3 : 1e-5));
          // Row 149 alone: the same bits.
          std::vector<float> alone(static_cast<std::size_t>(q_size));
          op.q = q.data() + 149 * q_size;
          op.rows = 1;
          op.meta = &meta[149];
          op.out = alone.data();
          run(*kernels, op);
          CHECK(same_bits(alone.data(), out.data() + 149 * q_size, q_size));
        }
      }
    }
  }
}

TEST_CASE("Attention: position 0 returns its own value; a NaN query fails alone", "[gpu]") {
  for (const KernelTable* kernels : all_kernels()) {
    INFO(kernels->isa);
    Cache cache(DataType::f32, 8, 1, 32, 1, 1);
    auto q = random_floats(2 * 32, 1), k = random_floats(2 * 32, 2);
    const auto v = random_floats(2 * 32, 3);
    const std::vector<RowMeta> meta{{0, 0}, {1, 0}};
    run(*kernels, RopeKvWrite{.k = k.data(),
                              .v = v.data(),
                              .k_stride = 32,
                              .v_stride = 32,
                              .rows = 2,
                              .rope = {.dims = 32},
                              .meta = meta.data(),
                              .kv = cache.view});
    q[32] = kNan;
    std::vector<float> out(64);
    run(*kernels, Attention{.q = q.data(),
                            .q_stride = 32,
                            .rows = 2,
                            .heads = 1,
                            .scale = 0.2F,
                            .meta = meta.data(),
                            .kv = cache.view,
                            .out = out.data(),
                            .out_stride = 32});
    CHECK(relative_error({out.begin(), out.begin() + 32}, {v.begin(), v.begin() + 32}) < 1e-6);
    CHECK(std::isnan(out[40]));
  }
}

TEST_CASE("RowStore: f32 pages keep every bit, f16 pages round to nearest", "[gpu]") {
  const auto x = random_floats(3 * 50, 8);
  const std::vector<RowMeta> meta{{0, 0}, {5, 0}, {2, 1}};
  const std::vector<std::int32_t> tables{2, 0, 3, 1};
  for (const KernelTable* kernels : all_kernels()) {
    for (const DataType type : {DataType::f32, DataType::f16}) {
      INFO(kernels->isa << ' ' << to_string(type));
      Memory pages(4 * row_block_bytes(type, 4, 50));
      auto from = x;
      RowStore op{.x = from.data(),
                  .rows = 3,
                  .meta = meta.data(),
                  .pages = {pages.data(), type, 4, 50, tables.data(), 2, row_block_bytes(type, 4, 50)}};
      run(*kernels, op);
      std::vector<float> to(3 * 50);
      op.direction = RowStore::Direction::load;
      op.x = to.data();
      run(*kernels, op);
      for (std::size_t i = 0; i < to.size(); ++i) {
        if (to[i] != (type == DataType::f32 ? x[i] : half_to_float(float_to_half(x[i]))))
          FAIL("element " << i);
      }
    }
  }
}

TEST_CASE("Head: statistics of logits by vocabulary size, ties and NaN", "[gpu]") {
  for (const int vocab : {1, 2, 255, 256, 257, 5000}) {
    const Weights w(DataType::q8_0, vocab, 64, 3);
    auto x = random_floats(3 * 64, 5);
    x[2 * 64] = kNan;
    for (const KernelTable* kernels : all_kernels()) {
      INFO(kernels->isa << " vocab " << vocab);
      Input in(3, 64);
      pack(*kernels, x, 3, in);
      std::vector<float> logits(static_cast<std::size_t>(3 * vocab));
      std::vector<HeadStats> stats(3);
      const Head op{.in = in.view, .rows = 3, .w = w.matrix, .logits = logits.data(), .stats = stats.data()};
      run(*kernels, op);
      std::vector<HeadStats> want(3);
      Head again = op;
      again.stats = want.data();
      head_stats_reference(again, 0, 1);
      for (std::size_t i = 0; i < 2; ++i) {
        CHECK(stats[i].argmax == want[i].argmax);
        CHECK(stats[i].max == want[i].max);
        CHECK(std::abs(stats[i].logsumexp - want[i].logsumexp) < 1e-4F);
        CHECK_FALSE(stats[i].nan);
      }
      CHECK(stats[2].nan);
      // A NaN first, inside and last; a tie takes the lower index.
      for (const int at : {0, vocab / 2, vocab - 1}) {
        std::vector<float> row(static_cast<std::size_t>(vocab), 1.0F);
        again.rows = 1;
        again.logits = row.data();
        kernels->head_stats(again, 0, 1);
        CHECK(want[0].argmax == 0);
        CHECK_FALSE(want[0].nan);
        row[static_cast<std::size_t>(at)] = kNan;
        kernels->head_stats(again, 0, 1);
        CHECK(want[0].nan);
      }
    }
  }
}

TEST_CASE("AddRows and CopyRows", "[gpu]") {
  for (const int cols : {2, 37}) {
    const auto x0 = random_floats(static_cast<std::size_t>(2 * cols), 1);
    const auto y0 = random_floats(static_cast<std::size_t>(2 * cols), 2);
    const auto bias0 = random_floats(static_cast<std::size_t>(cols), 3);
    for (const KernelTable* kernels : all_kernels()) {
      INFO(kernels->isa << " cols " << cols);
      auto got = x0, want = x0;
      run(*kernels, AddRows{got.data(), y0.data(), bias0.data(), 2, cols});
      add_rows_reference({want.data(), y0.data(), bias0.data(), 2, cols}, 0, 1);
      CHECK(got == want);
      run(*kernels, AddRows{got.data(), nullptr, bias0.data(), 2, cols});
      add_rows_reference({want.data(), nullptr, bias0.data(), 2, cols}, 0, 1);
      CHECK(got == want);
    }
  }
  std::vector<float> x{1, 2, 3, 4}, y{10, 20, 30, 40}, bias{0.5F, 0.25F};
  run_reference(AddRows{x.data(), y.data(), bias.data(), 2, 2});
  CHECK(x == std::vector<float>{11.5F, 22.25F, 33.5F, 44.25F});
  const std::vector<std::int32_t> from{1}, to{0};
  run_reference(CopyRows{y.data(), x.data(), 1, 2, from.data(), to.data()});
  CHECK(x == std::vector<float>{30, 40, 33.5F, 44.25F});
}

TEST_CASE("validate: shapes that kernels do not take are refused by name", "[gpu]") {
  Input in(2, 64);
  const Weights w(DataType::q4_1, 16, 32, 1);
  MatMul op{.in = in.view, .rows = 2};
  CHECK(validate(op).error().code == Errc::bad_request);
  op.add(w.matrix, nullptr, 16);
  CHECK(validate(op).error().message.find("columns") != std::string::npos);
  CHECK(validate(NormPack{.rows = 3, .cols = 64, .out = in.view}).error().message.find("rows") !=
        std::string::npos);
  CHECK(validate(NormPack{.rows = 2, .cols = 64, .out = in.view}));
  CHECK_FALSE(validate(Attention{.heads = 4}));
  CHECK_FALSE(validate(AddRows{.rows = -1, .cols = 2}));
}

}  // namespace helios::gpu::test
