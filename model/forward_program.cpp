#include "model/forward_program.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numeric>

#include "model/block_pool.hpp"
#include "model/kv_pools.hpp"

namespace helios::model {

ForwardProgram::ForwardProgram(const ForwardParts& parts, const StepPlan& plan, const StepDraft& draft)
    : parts_(parts),
      config_(*parts.config),
      work_(*parts.workspace),
      plan_(plan),
      draft_(draft),
      slots_(plan.outputs.size(), -1) {}

gpu::CommandList ForwardProgram::build() {
  write_inputs();
  write_tables();
  for (const Run& run : runs([](const StepRow& row) { return row.first_layer == 0; })) {
    float* x = work_.x + run.first * config_.hidden;
    ops_.push_back(gpu::Embed{parts_.globals->embedding, work_.ids + run.first, run.count, x});
    if (config_.parts.learned_positions) {
      ops_.push_back(gpu::AddPositions{x, parts_.globals->positions, work_.meta + run.first, run.count,
                                       config_.hidden, parts_.globals->position_rows,
                                       config_.parts.position_offset});
    }
  }
  int last = 0;
  for (const StepRow& row : plan_.rows) last = std::max<int>(last, row.last_layer);
  for (int l = 0; l < last; ++l) layer(l);
  shared_outputs();
  for (const ExitWeights& exit : parts_.globals->exits) {
    exit_outputs(exit, parts_.cache->pseudo_layer_of(exit.layer));
  }
  write_params();
  if (next_slot_ > 0) {
    ops_.push_back(
        gpu::Sample{work_.logits, next_slot_, config_.vocab, work_.params, work_.stats, work_.sampled});
  }
  return std::move(ops_);
}

void ForwardProgram::write_inputs() {
  for (std::size_t i = 0; i < plan_.rows.size(); ++i) {
    work_.ids[i] = plan_.rows[i].token;
    work_.meta[i] = {plan_.rows[i].position, draft_.table_of(i)};
  }
}

/// Tables [layers + pseudo-layers + 1][sequences][stride]; the last is the residual rows'. The stride is the
/// longest sequence's block count, so short contexts keep them in cache.
void ForwardProgram::write_tables() {
  const std::size_t layers =
      static_cast<std::size_t>(config_.layers) + parts_.cache->options().block_exits.size();
  std::size_t stride = 1;
  const std::size_t count = draft_.sequence_count();
  for (std::size_t s = 0; s < count; ++s) {
    const KvAccess sequence(draft_.sequence(s));
    for (std::size_t l = 0; l < layers; ++l) stride = std::max(stride, sequence.blocks(l).size());
    stride = std::max(stride, sequence.row_blocks().size());
  }
  table_stride_ = static_cast<std::int64_t>(stride);
  assert((layers + 1) * count * stride <= work_.table_capacity);
  for (std::size_t l = 0; l <= layers; ++l) {
    for (std::size_t s = 0; s < count; ++s) {
      const KvAccess sequence(draft_.sequence(s));
      const auto& blocks = l < layers ? sequence.blocks(l) : sequence.row_blocks();
      std::copy(blocks.begin(), blocks.end(), work_.tables + (l * count + s) * stride);
    }
  }
}

gpu::KvLayerView ForwardProgram::kv_view(int layer) const {
  const KvCacheOptions& o = parts_.cache->options();
  const auto count = static_cast<std::int64_t>(draft_.sequence_count());
  return {.base = KvAccess::kv_base(*parts_.cache),
          .type = o.kv_type,
          .block_tokens = o.block_tokens,
          .kv_heads = o.kv_heads,
          .head_dim = o.head_dim,
          .tables = work_.tables + layer * count * table_stride_,
          .table_stride = table_stride_,
          .block_bytes = parts_.cache->block_bytes()};
}

gpu::RowPagesView ForwardProgram::row_view() const {
  const KvCacheOptions& o = parts_.cache->options();
  const auto count = static_cast<std::int64_t>(draft_.sequence_count());
  const auto layers = config_.layers + static_cast<std::int64_t>(o.block_exits.size());
  return {.base = KvAccess::row_base(*parts_.cache),
          .type = o.row_type,
          .block_tokens = o.block_tokens,
          .cols = o.hidden,
          .tables = work_.tables + layers * count * table_stride_,
          .table_stride = table_stride_,
          .block_bytes = parts_.cache->row_block_bytes()};
}

template <class Predicate>
std::vector<ForwardProgram::Run> ForwardProgram::runs(Predicate active) const {
  std::vector<Run> found;
  for (std::size_t i = 0; i < plan_.rows.size(); ++i) {
    if (!active(plan_.rows[i])) continue;
    const auto row = static_cast<std::int64_t>(i);
    if (!found.empty() && found.back().first + found.back().count == row) {
      ++found.back().count;
    } else {
      found.push_back({row, 1});
    }
  }
  return found;
}

template <class Predicate>
ForwardProgram::Rows ForwardProgram::rows_where(Predicate take) const {
  Rows rows;
  for (std::size_t i = 0; i < plan_.rows.size(); ++i) {
    if (take(i)) rows.push_back(static_cast<std::int32_t>(i));
  }
  return rows;
}

ForwardProgram::Gather ForwardProgram::gather(const Rows& rows) {
  assert(index_used_ + rows.size() <= work_.index_capacity);
  const Gather gathered{work_.index + index_used_, work_.index_meta + index_used_,
                        static_cast<std::int64_t>(rows.size())};
  for (const std::int32_t row : rows) {
    work_.index[index_used_] = row;
    work_.index_meta[index_used_] = work_.meta[row];
    ++index_used_;
  }
  return gathered;
}

void ForwardProgram::store_rows(gpu::RowStore::Direction direction, const Rows& rows) {
  if (rows.empty()) return;
  const Gather at = gather(rows);
  ops_.push_back(gpu::RowStore{direction, work_.x, at.count, at.meta, at.index, row_view()});
}

/// work_.normed = norm(x).
void ForwardProgram::norm(const float* x, const std::int32_t* index, std::int64_t rows, const float* weight,
                          const float* bias) {
  ops_.push_back(gpu::NormPack{x, weight, config_.norm_epsilon, rows, config_.hidden, work_.normed, index,
                               config_.parts.norm, bias});
}

void ForwardProgram::add_bias(float* x, const float* bias, std::int64_t rows, std::int64_t cols) {
  if (bias != nullptr) ops_.push_back(gpu::AddRows{x, nullptr, bias, rows, cols});
}

/// Keys and values of all runs are written before any attention: rows of one sequence may be in several runs.
void ForwardProgram::attention_part(const LayerWeights& w, const gpu::KvLayerView& kv, float* x,
                                    const gpu::RowMeta* meta, const std::vector<Run>& runs) {
  const std::int64_t hidden = config_.hidden, q = config_.q_width(), k = config_.kv_width(),
                     width = q + 2 * k;
  for (const Run& run : runs) {
    float* out = work_.qkv + run.first * width;
    norm(x + run.first * hidden, nullptr, run.count, w.attention_norm, w.attention_norm_bias);
    gpu::MatMul project{work_.normed, run.count, {}, 0};
    project.add(w.q, out, width);
    project.add(w.k, out + q, width);
    project.add(w.v, out + q + k, width);
    ops_.push_back(project);
    add_bias(out, w.qkv_bias, run.count, width);
    gpu::RopeKvWrite write;
    write.q = out;
    write.k = out + q;
    write.v = out + q + k;
    write.q_stride = write.k_stride = write.v_stride = width;
    write.rows = run.count;
    write.heads = config_.heads;
    write.rope = {config_.rope_dims, config_.rope_base, config_.rope_scale,
                  config_.parts.rope == RopeKind::neighbours, parts_.globals->rope_factors};
    write.meta = meta + run.first;
    write.kv = kv;
    ops_.push_back(write);
  }
  for (const Run& run : runs) {
    gpu::Attention attend;
    attend.q = work_.qkv + run.first * width;
    attend.q_stride = width;
    attend.rows = run.count;
    attend.heads = config_.heads;
    attend.scale = 1.0F / std::sqrt(static_cast<float>(config_.head_dim));
    attend.meta = meta + run.first;
    attend.kv = kv;
    attend.out = work_.attended + run.first * q;
    attend.out_stride = q;
    ops_.push_back(attend);
    ops_.push_back(gpu::NormPack{attend.out, nullptr, 0.0F, run.count, q, work_.attended_packed, nullptr});
    gpu::MatMul project{work_.attended_packed, run.count, {}, 0};
    project.add(w.o, x + run.first * hidden, hidden, true);
    ops_.push_back(project);
    add_bias(x + run.first * hidden, w.o_bias, run.count, hidden);
  }
}

void ForwardProgram::feed_forward_part(const LayerWeights& w, float* x, const std::vector<Run>& runs) {
  const std::int64_t hidden = config_.hidden, ffn = config_.feed_forward;
  for (const Run& run : runs) {
    float* rows = x + run.first * hidden;
    norm(rows, nullptr, run.count, w.feed_forward_norm, w.feed_forward_norm_bias);
    gpu::MatMul widen{work_.normed, run.count, {}, 0};
    if (config_.parts.mlp == MlpKind::silu_gated) widen.add(w.gate, work_.gate, ffn);
    widen.add(w.up, work_.up, ffn);
    ops_.push_back(widen);
    if (config_.parts.mlp == MlpKind::silu_gated) {
      add_bias(work_.gate, w.gate_bias, run.count, ffn);
      add_bias(work_.up, w.up_bias, run.count, ffn);
      ops_.push_back(gpu::SiluMulPack{work_.gate, work_.up, ffn, run.count, ffn, work_.gated});
    } else {
      ops_.push_back(gpu::ReluPack{work_.up, w.up_bias, run.count, ffn, work_.gated});
    }
    gpu::MatMul narrow{work_.gated, run.count, {}, 0};
    narrow.add(w.down, rows, hidden, true);
    ops_.push_back(narrow);
    add_bias(rows, w.down_bias, run.count, hidden);
  }
}

void ForwardProgram::layer(int l) {
  store_rows(gpu::RowStore::Direction::load,
             rows_where([&](std::size_t i) { return l > 0 && plan_.rows[i].first_layer == l; }));
  const std::vector<Run> active =
      runs([&](const StepRow& row) { return row.first_layer <= l && l < row.last_layer; });
  const LayerWeights& w = (*parts_.layers)[static_cast<std::size_t>(l)];
  attention_part(w, kv_view(l), work_.x, work_.meta, active);
  feed_forward_part(w, work_.x, active);
  store_rows(gpu::RowStore::Direction::save,
             rows_where([&](std::size_t i) { return plan_.rows[i].last_layer == l + 1 && draft_.saves(i); }));
}

const ExitWeights* ForwardProgram::exit_at(int depth) const {
  for (const ExitWeights& exit : parts_.globals->exits) {
    if (exit.layer == depth) return &exit;
  }
  return nullptr;
}

void ForwardProgram::head(const float* x, const std::int32_t* index, std::int64_t rows,
                          const float* norm_weight, const float* norm_bias, const gpu::Matrix& w,
                          std::int32_t slot) {
  norm(x, index, rows, norm_weight, norm_bias);
  ops_.push_back(gpu::Head{work_.normed, rows, w, work_.logits + slot * config_.vocab, work_.stats + slot});
}

/// Outputs of all depths that have no head of their own share one product.
void ForwardProgram::shared_outputs() {
  const Rows rows = rows_where([&](std::size_t i) {
    return plan_.rows[i].output >= 0 && exit_at(plan_.rows[i].last_layer) == nullptr;
  });
  if (rows.empty()) return;
  for (const std::int32_t row : rows) {
    slots_[static_cast<std::size_t>(plan_.rows[static_cast<std::size_t>(row)].output)] = next_slot_++;
  }
  const Gather at = gather(rows);
  head(work_.x, at.index, at.count, parts_.globals->norm, parts_.globals->norm_bias, parts_.globals->head, 0);
}

/// logits = head(norm(block(adapter(h)))) on a copy of the residual: the stored row stays the raw one.
void ForwardProgram::exit_outputs(const ExitWeights& exit, int pseudo_layer) {
  // A block's keys and values are needed for every position, not only for those that yield a token.
  const Rows rows = rows_where([&](std::size_t i) {
    const StepRow& row = plan_.rows[i];
    return row.last_layer == exit.layer && (exit.block || row.output >= 0);
  });
  if (rows.empty()) return;
  const std::int64_t hidden = config_.hidden;
  const Gather at = gather(rows);
  if (exit.has_adapter()) {
    ops_.push_back(gpu::NormPack{work_.x, nullptr, 0.0F, at.count, hidden, work_.normed, at.index});
    gpu::MatMul adapt{work_.normed, at.count, {}, 0};
    adapt.add(exit.adapter, work_.y, hidden);
    ops_.push_back(adapt);
  } else {
    ops_.push_back(gpu::CopyRows{work_.x, work_.y, at.count, hidden, at.index, nullptr});
  }
  if (exit.adapter_bias != nullptr) {
    ops_.push_back(gpu::AddRows{work_.y, nullptr, exit.adapter_bias, at.count, hidden});
  }
  if (exit.block) {
    const std::vector<Run> all{{0, at.count}};
    attention_part(*exit.block, kv_view(pseudo_layer), work_.y, at.meta, all);
    feed_forward_part(*exit.block, work_.y, all);
  }
  Rows outputs;  // numbers of rows of y
  const std::int32_t slot = next_slot_;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::int16_t output = plan_.rows[static_cast<std::size_t>(rows[i])].output;
    if (output < 0) continue;
    outputs.push_back(static_cast<std::int32_t>(i));
    slots_[static_cast<std::size_t>(output)] = next_slot_++;
  }
  if (outputs.empty()) return;
  const Gather chosen = gather(outputs);
  const bool own_norm = exit.norm != nullptr;
  head(work_.y, chosen.index, chosen.count, own_norm ? exit.norm : parts_.globals->norm,
       own_norm ? exit.norm_bias : parts_.globals->norm_bias,
       exit.head.data != nullptr ? exit.head : parts_.globals->head, slot);
}

void ForwardProgram::write_params() {
  for (std::size_t i = 0; i < plan_.rows.size(); ++i) {
    if (plan_.rows[i].output < 0) continue;
    const auto output = static_cast<std::size_t>(plan_.rows[i].output);
    const StepOutput& wanted = plan_.outputs[output];
    gpu::SampleParams& params = work_.params[slots_[output]];
    params = gpu::SampleParams{};
    if (wanted.sampling == nullptr) continue;
    // The sequence's ids do not move until the next start().
    const std::span<const std::int32_t> history = plan_.rows[i].sequence->tokens();
    params = to_params(*wanted.sampling, wanted.counter, history.data(), plan_.rows[i].position + 1);
  }
}

}  // namespace helios::model
