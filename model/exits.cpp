#include "model/exits.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>

#include "gpu/half.hpp"

namespace helios::model {

namespace {

constexpr std::size_t kQ8BlockBytes = 34;

bool take_prefix(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

template <class T>
std::optional<T> number(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

class Reader {
 public:
  Reader(const Safetensors& file, const ModelConfig& config) : file_(file), config_(config) {}

  Result<std::vector<ExitHead>> read() {
    for (const SafetensorsTensor& tensor : file_.tensors()) {
      if (Result<void> ok = take(tensor); !ok) return ok.error();
    }
    for (const auto& [key, value] : file_.metadata()) {
      if (Result<void> ok = take(key, value); !ok) return ok.error();
    }
    std::vector<ExitHead> heads;
    for (auto& [layer, head] : heads_) {
      if (static_cast<bool>(head.norm) != static_cast<bool>(head.norm_bias) && config_.parts.norm_bias) {
        return fail(Errc::bad_file, fmt::format("{}: exit {}: a layer norm needs norm.weight and norm.bias",
                                                file_.path(), layer));
      }
      if (head.block) {
        if (Result<void> ok = check_block(layer, *head.block); !ok) return ok.error();
      }
      heads.push_back(std::move(head));
    }
    if (heads.empty()) return fail(Errc::bad_file, fmt::format("{}: no exit in this file", file_.path()));
    return heads;
  }

 private:
  Error unknown(std::string_view what, std::string_view name) const {
    return fail(Errc::bad_file,
                fmt::format("{}: {} '{}' is not part of an exits file", file_.path(), what, name));
  }

  /// "exits.18.rest" -> the exit, and text = "rest".
  Result<ExitHead*> exit_of(std::string_view& text, std::string_view whole) {
    std::string_view rest = text;
    if (!take_prefix(rest, "exits.")) return unknown("tensor", whole);
    const std::size_t dot = rest.find('.');
    const auto layer = number<int>(rest.substr(0, dot));
    if (dot == std::string_view::npos || !layer) return unknown("name", whole);
    if (*layer < 1 || *layer > config_.layers) {
      return fail(Errc::bad_file, fmt::format("{}: '{}': exit {} is outside 1..{}", file_.path(), whole,
                                              *layer, config_.layers));
    }
    text = rest.substr(dot + 1);
    ExitHead& head = heads_[*layer];
    head.layer = *layer;
    return &head;
  }

  /// `rank` -1: any number of rows.
  Result<void> set(ExitTensor& to, const SafetensorsTensor& tensor, std::int64_t rows, std::int64_t cols) {
    ExitTensor t;
    t.tensor = &tensor;
    t.rows = tensor.rows();
    t.cols = tensor.cols();
    if (const auto type = device_type(tensor.type)) {
      t.type = *type;
    } else if (tensor.type == SafetensorsType::u8 &&
               tensor.cols() % static_cast<std::int64_t>(kQ8BlockBytes) == 0) {
      t.type = gpu::DataType::q8_0;
      t.cols = tensor.cols() / static_cast<std::int64_t>(kQ8BlockBytes) * 32;
    } else {
      return fail(Errc::unsupported,
                  fmt::format("{}: {}: type {} is not supported (F32, F16, BF16, Q8_0 as U8 are)",
                              file_.path(), tensor.name, to_string(tensor.type)));
    }
    if ((rows >= 0 && t.rows != rows) || (cols >= 0 && t.cols != cols)) {
      return fail(Errc::bad_file, fmt::format("{}: {} is {} x {}, this model needs {} x {}", file_.path(),
                                              tensor.name, t.rows, t.cols, rows, cols));
    }
    to = t;
    return {};
  }

  Result<void> take(const SafetensorsTensor& tensor) {
    std::string_view part = tensor.name;
    const Result<ExitHead*> head = exit_of(part, tensor.name);
    if (!head) return head.error();
    const std::int64_t hidden = config_.hidden;
    if (part == "adapter.weight") return set((*head)->adapter_weight, tensor, hidden, hidden);
    if (part == "adapter.bias") return set((*head)->adapter_bias, tensor, 1, hidden);
    if (part == "norm.weight") return set((*head)->norm, tensor, 1, hidden);
    if (part == "norm.bias" && config_.parts.norm_bias) return set((*head)->norm_bias, tensor, 1, hidden);
    if (part == "head.weight") return set((*head)->head, tensor, config_.vocab, hidden);
    if (take_prefix(part, "block.")) return take_block(block_of(**head), part, tensor);
    return unknown("tensor", tensor.name);
  }

  static ExitBlock& block_of(ExitHead& head) {
    if (!head.block) head.block.emplace();
    return *head.block;
  }

  Result<void> take_block(ExitBlock& block, std::string_view part, const SafetensorsTensor& tensor) {
    const std::int64_t hidden = config_.hidden, ffn = config_.feed_forward;
    const std::int64_t q = config_.q_width(), kv = config_.kv_width();
    if (part == "input_layernorm.weight") return set(block.attention_norm, tensor, 1, hidden);
    if (part == "post_attention_layernorm.weight") return set(block.feed_forward_norm, tensor, 1, hidden);
    struct Named {
      std::string_view name;
      ExitProjection* projection;
      std::int64_t rows, cols;
    };
    const Named all[] = {
        {"self_attn.q_proj.", &block.q, q, hidden},   {"self_attn.k_proj.", &block.k, kv, hidden},
        {"self_attn.v_proj.", &block.v, kv, hidden},  {"self_attn.o_proj.", &block.o, hidden, q},
        {"mlp.gate_proj.", &block.gate, ffn, hidden}, {"mlp.up_proj.", &block.up, ffn, hidden},
        {"mlp.down_proj.", &block.down, hidden, ffn}};
    for (const Named& named : all) {
      if (!take_prefix(part, named.name)) continue;
      if (part == "bias" && config_.parts.qkv_bias) {
        if (named.projection == &block.q) return set(block.q_bias, tensor, 1, named.rows);
        if (named.projection == &block.k) return set(block.k_bias, tensor, 1, named.rows);
        if (named.projection == &block.v) return set(block.v_bias, tensor, 1, named.rows);
      }
      if (part == "weight") return set(named.projection->weight, tensor, named.rows, named.cols);
      if (part == "lora_a" || part == "lora_a.weight")
        return set(named.projection->lora_a, tensor, -1, named.cols);
      if (part == "lora_b" || part == "lora_b.weight")
        return set(named.projection->lora_b, tensor, named.rows, -1);
    }
    return unknown("tensor", tensor.name);
  }

  Result<void> take(const std::string& key, const std::string& value) {
    std::string_view part = key;
    if (!part.starts_with("exits.")) return {};  // provenance
    const Result<ExitHead*> head = exit_of(part, key);
    if (!head) return head.error();
    auto bad = [&] {
      return fail(Errc::bad_file,
                  fmt::format("{}: metadata {}='{}' is not usable", file_.path(), key, value));
    };
    if (part == "threshold") {
      const auto threshold = number<float>(value);
      if (!threshold || !(*threshold >= 0.0F && *threshold <= 1.0F)) return bad();
      (*head)->threshold = *threshold;
    } else if (part == "block.base_layer") {
      const auto layer = number<int>(value);
      if (!layer || *layer < 0 || *layer >= config_.layers) return bad();
      block_of(**head).base_layer = *layer;
    } else if (part == "block.lora_scale") {
      const auto scale = number<float>(value);
      if (!scale || !std::isfinite(*scale)) return bad();
      block_of(**head).lora_scale = *scale;
    }
    return {};
  }

  Result<void> check_block(int layer, const ExitBlock& block) const {
    const bool based = block.base_layer >= 0;
    auto bad = [&](std::string_view what) {
      return fail(Errc::bad_file, fmt::format("{}: the block of exit {}: {}", file_.path(), layer, what));
    };
    if (config_.parts.mlp != MlpKind::silu_gated || config_.parts.norm_bias || config_.parts.o_bias ||
        config_.parts.mlp_bias) {
      return fail(Errc::unsupported,
                  fmt::format("{}: exit {} has a block, which models of kind {} cannot have "
                              "here: use an adapter, a norm or a head",
                              file_.path(), layer, config_.architecture));
    }
    if (config_.parts.qkv_bias && !based && (!block.q_bias || !block.k_bias || !block.v_bias)) {
      return bad("a bias of q, k or v is missing and metadata names no block.base_layer");
    }
    for (const ExitProjection* p :
         {&block.q, &block.k, &block.v, &block.o, &block.gate, &block.up, &block.down}) {
      const bool delta = p->lora_a || p->lora_b;
      if (delta && (!p->lora_a || !p->lora_b || p->lora_a.rows != p->lora_b.cols)) {
        return bad("lora_a [rank, in] and lora_b [out, rank] do not match");
      }
      if (delta && p->weight) return bad("a projection has both a weight and low-rank deltas");
      if (!p->weight && !based) return bad("a projection is missing and metadata names no block.base_layer");
    }
    if ((!block.attention_norm || !block.feed_forward_norm) && !based) {
      return bad("a norm is missing and metadata names no block.base_layer");
    }
    return {};
  }

  const Safetensors& file_;
  const ModelConfig& config_;
  std::map<int, ExitHead> heads_;
};

Result<void> check_model(const Safetensors& file, const Checkpoint& model, const ModelConfig& config,
                         const std::string& vocab_hash) {
  const Result<std::string> norms = norms_hash(model, config.layers);
  if (!norms) return norms.error();
  const std::pair<const char*, std::string> wanted[] = {{"layers", std::to_string(config.layers)},
                                                        {"hidden", std::to_string(config.hidden)},
                                                        {"vocab", std::to_string(config.vocab)},
                                                        {"vocab_hash", vocab_hash},
                                                        {"norms_hash", *norms}};
  for (const auto& [key, value] : wanted) {
    const Result<std::string> found = file.metadata_value(key);
    if (!found) return found.error();
    if (*found != value) {
      return fail(Errc::bad_request,
                  fmt::format("{} was made for another model than {}: {} is {}, the model's is {}",
                              file.path(), model.path(), key, *found, value));
    }
  }
  return {};
}

}  // namespace

Result<std::string> norms_hash(const Checkpoint& model, int layers) {
  std::vector<std::string> names;
  for (int layer = 0; layer < layers; ++layer) {
    names.push_back(fmt::format("blk.{}.attn_norm.weight", layer));
    names.push_back(fmt::format("blk.{}.ffn_norm.weight", layer));
  }
  names.emplace_back("output_norm.weight");
  std::uint64_t hash = 14695981039346656037ULL;
  for (const std::string& name : names) {
    const Result<const StoredTensor*> tensor = model.require(name);
    if (!tensor) return tensor.error();
    const gpu::DataType type = (*tensor)->type;
    if (gpu::is_quantised(type)) {
      return fail(Errc::unsupported,
                  fmt::format("{}: {} is quantised: no exits file can name it", model.path(), name));
    }
    std::vector<std::byte> bytes((*tensor)->bytes);
    if (Result<void> read = model.read(**tensor, bytes); !read) return read.error();
    const std::size_t step = gpu::block_bytes(type);
    for (std::size_t at = 0; at < bytes.size(); at += step) {
      std::uint32_t bits = 0;
      std::memcpy(&bits, bytes.data() + at, step);
      if (type == gpu::DataType::f16) {
        bits = std::bit_cast<std::uint32_t>(gpu::half_to_float(static_cast<std::uint16_t>(bits)));
      } else if (type == gpu::DataType::bf16) {
        bits <<= 16U;
      }
      for (int byte = 0; byte < 4; ++byte) {
        hash = (hash ^ ((bits >> (8 * byte)) & 0xFFU)) * 1099511628211ULL;
      }
    }
  }
  return fmt::format("{:016x}", hash);
}

Result<std::shared_ptr<const ExitsFile>> ExitsFile::open(const std::string& path, const Checkpoint& model,
                                                         const ModelConfig& config,
                                                         const std::string& vocab_hash) {
  std::shared_ptr<ExitsFile> exits(new ExitsFile());
  Result<std::shared_ptr<const Safetensors>> file = Safetensors::open(path);
  if (!file) return file.error();
  exits->file_ = std::move(*file);
  if (Result<void> ok = check_model(*exits->file_, model, config, vocab_hash); !ok) return ok.error();
  Result<std::vector<ExitHead>> heads = Reader(*exits->file_, config).read();
  if (!heads) return heads.error();
  exits->heads_ = std::move(*heads);
  return std::shared_ptr<const ExitsFile>(std::move(exits));
}

const ExitHead* ExitsFile::find(int layer) const noexcept {
  const auto it =
      std::find_if(heads_.begin(), heads_.end(), [&](const ExitHead& head) { return head.layer == layer; });
  return it == heads_.end() ? nullptr : &*it;
}

std::vector<int> ExitsFile::block_layers() const {
  std::vector<int> layers;
  for (const ExitHead& head : heads_) {
    if (head.block) layers.push_back(head.layer);
  }
  return layers;
}

Result<std::vector<float>> ExitsFile::read_floats(const ExitTensor& t) const {
  std::vector<std::byte> bytes(t.tensor->bytes);
  if (Result<void> read = file_->read(*t.tensor, bytes); !read) return read.error();
  std::vector<float> out(static_cast<std::size_t>(t.rows * t.cols));
  auto half_at = [&](std::size_t at) {
    std::uint16_t value = 0;
    std::memcpy(&value, bytes.data() + at, 2);
    return value;
  };
  for (std::size_t i = 0; i < out.size(); ++i) {
    switch (t.type) {
      case gpu::DataType::f32:
        std::memcpy(&out[i], bytes.data() + 4 * i, 4);
        break;
      case gpu::DataType::f16:
        out[i] = gpu::half_to_float(half_at(2 * i));
        break;
      case gpu::DataType::bf16:
        out[i] = gpu::bfloat_to_float(half_at(2 * i));
        break;
      default: {
        const std::size_t block = i / 32 * kQ8BlockBytes;
        out[i] = gpu::half_to_float(half_at(block)) *
                 static_cast<float>(static_cast<std::int8_t>(bytes[block + 2 + i % 32]));
      }
    }
  }
  return out;
}

}  // namespace helios::model
