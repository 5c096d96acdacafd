#include "model/workspace.hpp"

namespace helios::model {

namespace {

class Layout {
 public:
  explicit Layout(std::byte* base) : base_(base) {}
  std::byte* take(std::size_t bytes) {
    std::byte* place = base_ == nullptr ? nullptr : base_ + used_;
    used_ += (bytes + 63) & ~std::size_t{63};
    return place;
  }
  template <class T>
  void array(T*& to, std::int64_t count) {
    to = reinterpret_cast<T*>(take(static_cast<std::size_t>(count) * sizeof(T)));
  }
  gpu::Activation activation(std::int64_t rows, std::int64_t cols) {
    return {take(gpu::activation_bytes(rows, cols)), rows, cols};
  }
  std::size_t used() const { return used_; }

 private:
  std::byte* base_;
  std::size_t used_ = 0;
};

}  // namespace

int max_sequences(const TransformerOptions& options) {
  return options.max_sequences > 0 ? options.max_sequences : options.max_outputs;
}

Workspace Workspace::place(const ModelConfig& c, const TransformerOptions& o, int pseudo_layers,
                           std::byte* base) {
  Workspace w;
  Layout layout(base);
  const std::int64_t rows = o.max_rows, outputs = o.max_outputs;
  // A row is at most in one load, one save, one exit's rows; an output in one gather and one exit's outputs.
  w.index_capacity = static_cast<std::size_t>(3 * rows + 2 * outputs);
  const std::int64_t blocks = (c.context + o.block_tokens - 1) / o.block_tokens;
  w.table_capacity = static_cast<std::size_t>((c.layers + pseudo_layers + 1) * max_sequences(o) * blocks);
  layout.array(w.x, rows * c.hidden);
  layout.array(w.y, rows * c.hidden);
  layout.array(w.qkv, rows * (c.q_width() + 2 * c.kv_width()));
  layout.array(w.attended, rows * c.q_width());
  if (c.parts.mlp == MlpKind::silu_gated) layout.array(w.gate, rows * c.feed_forward);
  layout.array(w.up, rows * c.feed_forward);
  w.normed = layout.activation(rows, c.hidden);
  w.attended_packed = layout.activation(rows, c.q_width());
  w.gated = layout.activation(rows, c.feed_forward);
  layout.array(w.logits, outputs * c.vocab);
  layout.array(w.stats, outputs);
  layout.array(w.params, outputs);
  layout.array(w.sampled, outputs);
  layout.array(w.ids, rows);
  layout.array(w.meta, rows);
  layout.array(w.index, static_cast<std::int64_t>(w.index_capacity));
  layout.array(w.index_meta, static_cast<std::int64_t>(w.index_capacity));
  layout.array(w.tables, static_cast<std::int64_t>(w.table_capacity));
  w.bytes = layout.used();
  return w;
}

}  // namespace helios::model
