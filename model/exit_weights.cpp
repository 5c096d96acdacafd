#include "model/exit_weights.hpp"

#include <cstring>
#include <initializer_list>

#include "gpu/half.hpp"
#include "gpu/quantise.hpp"

namespace helios::model {

namespace {

using gpu::DataType;

constexpr std::size_t aligned(std::size_t bytes) {
  return (bytes + 63) & ~std::size_t{63};
}

/// One matrix of a block: where its values come from.
struct Part {
  const ExitProjection* own;
  const StoredTensor* base;  // null without a base layer
  int heads;                 // > 0: rows are q or k, by head

  bool merged() const { return static_cast<bool>(own->lora_a); }
  DataType type() const {
    if (own->weight) return own->weight.type;
    if (!merged() || base->type == DataType::f32) return base->type;
    // A sum is no longer on the base's grid of 4 to 6 bits; 8 bits keep it to a part in 250 of a block's largest weight.
    return gpu::is_quantised(base->type) ? DataType::q8_0 : DataType::f16;
  }
  std::int64_t rows() const { return own->weight ? own->weight.rows : base->rows(); }
  std::int64_t cols() const { return own->weight ? own->weight.cols : base->cols(); }
};

struct BlockParts {
  Part q, k, v, o, gate, up, down;
};

BlockParts parts_of(const ModelFile& file, const ExitBlock& b) {
  const LayerTensors none{};
  const LayerTensors& t = b.base_layer >= 0 ? file.layer(b.base_layer) : none;
  // The file's q and k are in Hugging Face's order, which is what a rotation of halves takes.
  const bool reorder = file.config().parts.rope == RopeKind::neighbours;
  return {{&b.q, t.q, reorder ? file.config().heads : 0},
          {&b.k, t.k, reorder ? file.config().kv_heads : 0},
          {&b.v, t.v, 0},
          {&b.o, t.o, 0},
          {&b.gate, t.gate, 0},
          {&b.up, t.up, 0},
          {&b.down, t.down, 0}};
}

/// The row of Hugging Face's layout that GGUF's row `row` holds: pairs (i, i + d/2) become neighbours.
std::int64_t hugging_face_row(std::int64_t row, std::int64_t rows, int heads) {
  if (heads == 0) return row;
  const std::int64_t dim = rows / heads, head = row / dim, i = row % dim;
  return head * dim + (i % 2) * (dim / 2) + i / 2;
}

class Loader {
 public:
  Loader(const gpu::Device& device, const ModelFile& file, std::byte* base)
      : device_(device), file_(file), base_(base) {}

  Result<gpu::Matrix> matrix(const ExitTensor& t) {
    std::vector<std::byte> bytes(t.tensor->bytes);
    if (Result<void> read = file_.exits()->file().read(*t.tensor, bytes); !read) return read.error();
    return pack(t.type, t.rows, t.cols, bytes);
  }

  Result<const float*> vector(const ExitTensor& t) {
    Result<std::vector<float>> values = file_.exits()->read_floats(t);
    if (!values) return values.error();
    return store(*values);
  }

  Result<const float*> norm(const ExitTensor& own, const StoredTensor* base) {
    const Result<std::vector<float>> values = floats(own, base);
    if (!values) return values.error();
    return store(*values);
  }

  /// Vectors end to end: own, or the base layer's.
  Result<const float*> joined(
      std::initializer_list<std::pair<const ExitTensor*, const StoredTensor*>> parts) {
    std::vector<float> all;
    for (const auto& [own, base] : parts) {
      const Result<std::vector<float>> values = floats(*own, base);
      if (!values) return values.error();
      all.insert(all.end(), values->begin(), values->end());
    }
    return store(all);
  }

  Result<gpu::Matrix> part(const Part& p) {
    if (p.merged()) return merge(p);
    if (!p.own->weight) {
      std::vector<std::byte> bytes(p.base->bytes);
      if (Result<void> read = file_.checkpoint().read(*p.base, bytes); !read) return read.error();
      return pack(p.base->type, p.rows(), p.cols(), bytes);
    }
    const ExitTensor& t = p.own->weight;
    std::vector<std::byte> bytes(t.tensor->bytes);
    if (Result<void> read = file_.exits()->file().read(*t.tensor, bytes); !read) return read.error();
    const std::size_t row_bytes = gpu::row_bytes(t.type, t.cols);
    std::vector<std::byte> ordered(bytes.size());
    for (std::int64_t row = 0; row < t.rows; ++row) {
      const std::int64_t from = hugging_face_row(row, t.rows, p.heads);
      std::memcpy(ordered.data() + static_cast<std::size_t>(row) * row_bytes,
                  bytes.data() + static_cast<std::size_t>(from) * row_bytes, row_bytes);
    }
    return pack(t.type, t.rows, t.cols, ordered);
  }

 private:
  Result<std::vector<float>> floats(const ExitTensor& own, const StoredTensor* base) {
    return own ? file_.exits()->read_floats(own) : file_.checkpoint().read_floats(*base);
  }

  Result<gpu::Matrix> merge(const Part& p) {
    Result<std::vector<float>> w = file_.checkpoint().read_floats(*p.base);
    if (!w) return w.error();
    const Result<std::vector<float>> a = file_.exits()->read_floats(p.own->lora_a);
    if (!a) return a.error();
    const Result<std::vector<float>> b = file_.exits()->read_floats(p.own->lora_b);
    if (!b) return b.error();
    const std::int64_t rows = p.rows(), cols = p.cols(), rank = p.own->lora_a.rows;
    std::vector<double> delta(static_cast<std::size_t>(cols));
    for (std::int64_t row = 0; row < rows; ++row) {
      std::fill(delta.begin(), delta.end(), 0.0);
      const float* b_row = b->data() + hugging_face_row(row, rows, p.heads) * rank;
      for (std::int64_t r = 0; r < rank; ++r) {
        const float* a_row = a->data() + r * cols;
        for (std::int64_t c = 0; c < cols; ++c)
          delta[static_cast<std::size_t>(c)] += double{b_row[r]} * a_row[c];
      }
      float* w_row = w->data() + row * cols;
      for (std::int64_t c = 0; c < cols; ++c) {
        w_row[c] = static_cast<float>(w_row[c] + scale_ * delta[static_cast<std::size_t>(c)]);
      }
    }
    if (p.type() == DataType::f32) return pack(DataType::f32, rows, cols, std::as_bytes(std::span(*w)));
    if (p.type() == DataType::q8_0) {
      const std::size_t row_bytes = gpu::row_bytes(DataType::q8_0, cols);
      std::vector<std::byte> blocks(static_cast<std::size_t>(rows) * row_bytes);
      for (std::int64_t row = 0; row < rows; ++row) {
        gpu::quantise_row(DataType::q8_0, w->data() + row * cols, cols,
                          blocks.data() + static_cast<std::size_t>(row) * row_bytes);
      }
      return pack(DataType::q8_0, rows, cols, blocks);
    }
    std::vector<std::uint16_t> halves(w->size());
    for (std::size_t i = 0; i < halves.size(); ++i) halves[i] = gpu::float_to_half((*w)[i]);
    return pack(DataType::f16, rows, cols, std::as_bytes(std::span(halves)));
  }

  gpu::Matrix pack(DataType type, std::int64_t rows, std::int64_t cols, std::span<const std::byte> bytes) {
    std::byte* place = take(device_.packed_bytes(type, rows, cols));
    gpu::pack_panels(type, rows, cols, bytes.data(), place);
    return device_.matrix_view(type, rows, cols, place);
  }

  const float* store(const std::vector<float>& values) {
    std::byte* place = take(values.size() * sizeof(float));
    std::memcpy(place, values.data(), values.size() * sizeof(float));
    return reinterpret_cast<const float*>(place);
  }

  std::byte* take(std::size_t bytes) {
    std::byte* place = base_ + used_;
    used_ += aligned(bytes);
    return place;
  }

  const gpu::Device& device_;
  const ModelFile& file_;
  std::byte* base_;
  std::size_t used_ = 0;

 public:
  double scale_ = 1.0;  // of low-rank deltas
};

std::size_t own_bytes(const gpu::Device& device, const ExitHead& head) {
  std::size_t bytes = 0;
  for (const ExitTensor* t : {&head.adapter_weight, &head.head}) {
    if (*t) bytes += aligned(device.packed_bytes(t->type, t->rows, t->cols));
  }
  for (const ExitTensor* t : {&head.adapter_bias, &head.norm, &head.norm_bias}) {
    if (*t) bytes += aligned(static_cast<std::size_t>(t->cols) * sizeof(float));
  }
  return bytes;
}

std::size_t block_bytes(const gpu::Device& device, const ModelFile& file, const ExitBlock& block) {
  const BlockParts parts = parts_of(file, block);
  const ModelConfig& c = file.config();
  std::size_t bytes = 2 * aligned(static_cast<std::size_t>(c.hidden) * sizeof(float));
  if (c.parts.qkv_bias)
    bytes += aligned(static_cast<std::size_t>(c.q_width() + 2 * c.kv_width()) * sizeof(float));
  for (const Part* p : {&parts.q, &parts.k, &parts.v, &parts.o, &parts.gate, &parts.up, &parts.down}) {
    bytes += aligned(device.packed_bytes(p->type(), p->rows(), p->cols()));
  }
  return bytes;
}

Result<LayerWeights> load_block(gpu::Device& device, const ModelFile& file, const ExitBlock& block) {
  Result<gpu::Slab> slab = device.budget().reserve(block_bytes(device, file, block), gpu::Use::weights);
  if (!slab) return slab.error();
  LayerWeights w;
  w.slab = std::move(*slab);
  Loader loader(device, file, w.slab.data());
  loader.scale_ = block.lora_scale;
  const BlockParts parts = parts_of(file, block);
  const std::pair<const Part*, gpu::Matrix*> matrices[] = {
      {&parts.q, &w.q},       {&parts.k, &w.k},   {&parts.v, &w.v},      {&parts.o, &w.o},
      {&parts.gate, &w.gate}, {&parts.up, &w.up}, {&parts.down, &w.down}};
  for (const auto& [part, matrix] : matrices) {
    Result<gpu::Matrix> loaded = loader.part(*part);
    if (!loaded) return loaded.error();
    *matrix = *loaded;
  }
  const bool based = block.base_layer >= 0;
  if (file.config().parts.qkv_bias) {
    const LayerTensors none{};
    const LayerTensors& t = based ? file.layer(block.base_layer) : none;
    const Result<const float*> bias =
        loader.joined({{&block.q_bias, t.q_bias}, {&block.k_bias, t.k_bias}, {&block.v_bias, t.v_bias}});
    if (!bias) return bias.error();
    w.qkv_bias = *bias;
  }
  const Result<const float*> attention =
      loader.norm(block.attention_norm, based ? file.layer(block.base_layer).attention_norm : nullptr);
  if (!attention) return attention.error();
  const Result<const float*> feed_forward =
      loader.norm(block.feed_forward_norm, based ? file.layer(block.base_layer).feed_forward_norm : nullptr);
  if (!feed_forward) return feed_forward.error();
  w.attention_norm = *attention;
  w.feed_forward_norm = *feed_forward;
  return w;
}

}  // namespace

std::size_t exit_device_bytes(const gpu::Device& device, const ModelFile& file, const ExitHead& head) {
  return own_bytes(device, head) + (head.block ? block_bytes(device, file, *head.block) : 0);
}

Result<ExitWeights> load_exit(gpu::Device& device, const ModelFile& file, const ExitHead& head) {
  ExitWeights exit;
  exit.layer = head.layer;
  if (const std::size_t bytes = own_bytes(device, head); bytes > 0) {
    Result<gpu::Slab> slab = device.budget().reserve(bytes, gpu::Use::weights);
    if (!slab) return slab.error();
    exit.slab = std::move(*slab);
    Loader loader(device, file, exit.slab.data());
    for (const auto& [tensor, matrix] :
         {std::pair{&head.adapter_weight, &exit.adapter}, {&head.head, &exit.head}}) {
      if (!*tensor) continue;
      Result<gpu::Matrix> loaded = loader.matrix(*tensor);
      if (!loaded) return loaded.error();
      *matrix = *loaded;
    }
    for (const auto& [tensor, vector] : {std::pair{&head.adapter_bias, &exit.adapter_bias},
                                         {&head.norm, &exit.norm},
                                         {&head.norm_bias, &exit.norm_bias}}) {
      if (!*tensor) continue;
      Result<const float*> loaded = loader.vector(*tensor);
      if (!loaded) return loaded.error();
      *vector = *loaded;
    }
  }
  if (head.block) {
    Result<LayerWeights> block = load_block(device, file, *head.block);
    if (!block) return block.error();
    exit.block = std::move(*block);
  }
  return exit;
}

}  // namespace helios::model
