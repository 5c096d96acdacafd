#include <algorithm>

#include "gpu/kernels/kernel_table.hpp"

namespace helios::gpu {

namespace {

MatMul product_of(const Head& op) {
  MatMul product{.in = op.in, .rows = op.rows};
  product.add(op.w, op.logits, op.w.rows);
  return product;
}

struct Runner {
  const KernelTable& k;
  int stage;
  std::int64_t chunk, chunks;

  void operator()(const Embed& op) const { k.embed(op, chunk, chunks); }
  void operator()(const NormPack& op) const { k.norm_pack(op, chunk, chunks); }
  void operator()(const MatMul& op) const { k.mat_mul(op, chunk, chunks); }
  void operator()(const SiluMulPack& op) const { k.silu_mul_pack(op, chunk, chunks); }
  void operator()(const RopeKvWrite& op) const { k.rope_kv_write(op, chunk, chunks); }
  void operator()(const Attention& op) const { k.attention(op, chunk, chunks); }
  void operator()(const RowStore& op) const { k.row_store(op, chunk, chunks); }
  void operator()(const Head& op) const {
    if (stage == 0) {
      k.mat_mul(product_of(op), chunk, chunks);
    } else {
      k.head_stats(op, chunk, chunks);
    }
  }
  void operator()(const Sample& op) const { k.sample(op, chunk, chunks); }
  void operator()(const AddRows& op) const { k.add_rows(op, chunk, chunks); }
  void operator()(const CopyRows& op) const { k.copy_rows(op, chunk, chunks); }
  void operator()(const ReluPack& op) const { k.relu_pack(op, chunk, chunks); }
  void operator()(const AddPositions& op) const { k.add_positions(op, chunk, chunks); }
};

/// How finely an op is cut: finer than the threads, so that a busy neighbour holds up one part only.
struct Splitter {
  int threads;

  // Work of about a microsecond a row is not worth a phase of its own for a handful of rows.
  int by_row(std::int64_t rows) const { return rows < 8 ? 1 : clamp(rows / 2, 8 * threads); }
  int products(std::int64_t rows, std::int64_t panel_pairs) const {
    return clamp(panel_pairs, (rows >= 32 ? 16 : 4) * threads);
  }
  int clamp(std::int64_t units, int limit) const {
    return threads == 1 ? 1 : static_cast<int>(std::clamp<std::int64_t>(units, 1, limit));
  }

  int operator()(const Embed& op) const { return by_row(op.rows); }
  int operator()(const NormPack& op) const { return by_row(op.rows); }
  int operator()(const SiluMulPack& op) const { return by_row(op.rows); }
  int operator()(const RopeKvWrite& op) const { return by_row(op.rows); }
  int operator()(const RowStore& op) const { return by_row(op.rows); }
  int operator()(const AddRows& op) const { return by_row(op.rows); }
  int operator()(const CopyRows& op) const { return by_row(op.rows); }
  int operator()(const ReluPack& op) const { return by_row(op.rows); }
  int operator()(const AddPositions& op) const { return by_row(op.rows); }
  int operator()(const Attention& op) const { return clamp(op.rows * op.heads, 16 * threads); }
  int operator()(const Sample& op) const { return clamp(op.rows, 8 * threads); }
  int operator()(const Head& op) const { return products(op.rows, panel_count(op.w.rows) / 2); }
  int operator()(const MatMul& op) const {
    std::int64_t panels = 0;
    for (std::int32_t i = 0; i < op.count; ++i)
      panels += panel_count(op.projections[static_cast<std::size_t>(i)].w.rows);
    return products(op.rows, panels / 2);
  }
};

}  // namespace

void Phase::run(int chunk) const {
  std::visit(Runner{*kernels, stage, chunk, chunks}, *op);
}

void append_phases(const Op& op, const KernelTable& kernels, int threads, std::vector<Phase>& out) {
  const std::int64_t rows = std::visit([](const auto& body) { return body.rows; }, op);
  if (rows == 0) return;
  const Splitter split{threads};
  const bool brief = rows < 64;
  out.push_back({&kernels, &op, std::visit(split, op), 0, brief});
  if (std::holds_alternative<Head>(op))
    out.push_back({&kernels, &op, split.clamp(rows, 8 * threads), 1, brief});
}

void run_reference(const Op& op) {
  std::vector<Phase> phases;
  append_phases(op, reference_kernels(), 1, phases);
  for (const Phase& phase : phases) phase.run(0);
}

const KernelTable& reference_kernels() {
  static constexpr KernelTable kTable{
      .isa = "reference",
      .embed = embed_reference,
      .norm_pack = norm_pack_reference,
      .mat_mul = mat_mul_reference,
      .silu_mul_pack = silu_mul_pack_reference,
      .rope_kv_write = rope_kv_write_reference,
      .attention = attention_reference,
      .row_store = row_store_reference,
      .head_stats = head_stats_reference,
      .sample = sample_reference,
      .add_rows = add_rows_reference,
      .copy_rows = copy_rows_reference,
      .relu_pack = relu_pack_reference,
      .add_positions = add_positions_reference,
  };
  return kTable;
}

}  // namespace helios::gpu
