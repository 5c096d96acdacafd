#include "model/synthetic_model.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <filesystem>

#include "gpu/half.hpp"
#include "model/gguf_model.hpp"
#include "model/gguf_writer.hpp"
#include "model/layer_tensors.hpp"
#include "model/vocabulary.hpp"

namespace helios::model {

namespace {

using gpu::DataType;

constexpr std::size_t kPieceBytes = std::size_t{1} << 20;

/// Steele, Lea and Flood's SplitMix64: the n-th number of a seed, whatever came before.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed * 0xD1342543DE82EF95ULL + 0x2545F4914F6CDD1DULL) {}
  std::uint64_t next() {
    std::uint64_t z = state_ += 0x9E3779B97F4A7C15ULL;
    z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27U)) * 0x94D049BB133111EBULL;
    return z ^ (z >> 31U);
  }
  /// Uniform, mean 0, standard deviation 1.
  float unit() { return (static_cast<float>(next() >> 40U) * 0x1p-23F - 1.0F) * std::sqrt(3.0F); }

 private:
  std::uint64_t state_;
};

struct Planned {
  std::string name;
  DataType type;
  std::int64_t rows, cols;
  float mean, deviation;
};

/// Makes a tensor's bytes, block by block.
class Filler {
 public:
  Filler(const Planned& tensor, std::uint64_t seed) : tensor_(tensor), random_(seed) {
    for (std::uint16_t& half : halves_)
      half = gpu::float_to_half(tensor.mean + tensor.deviation * random_.unit());
  }

  /// out: whole blocks.
  void fill(std::span<std::byte> out) {
    const std::size_t step = gpu::block_bytes(tensor_.type);
    for (std::size_t at = 0; at < out.size(); at += step) block(out.data() + at);
  }

 private:
  void half(std::byte* at, float value) {
    const std::uint16_t bits = gpu::float_to_half(value);
    std::memcpy(at, &bits, 2);
  }
  void bytes(std::byte* at, std::size_t count) {  // a multiple of 8
    for (std::size_t i = 0; i < count; i += 8) {
      const std::uint64_t value = random_.next();
      std::memcpy(at + i, &value, 8);
    }
  }
  // Codes are uniform, so the scale follows from the deviation of a uniform integer.
  void block(std::byte* out) {
    switch (tensor_.type) {
      case DataType::f32: {
        const float value = tensor_.mean + tensor_.deviation * random_.unit();
        std::memcpy(out, &value, 4);
        return;
      }
      case DataType::f16:
        std::memcpy(out, &halves_[random_.next() >> 52U], 2);
        return;
      case DataType::q8_0:  // -127..127
        half(out, tensor_.deviation / 73.61F);
        bytes(out + 2, 32);
        for (std::size_t i = 2; i < 34; ++i) {
          if (out[i] == std::byte{0x80}) out[i] = std::byte{0x7F};
        }
        return;
      case DataType::q4_0: {  // -8..7: the sign of the scale takes the mean away
        const float scale = tensor_.deviation / 4.64F;
        half(out, random_.next() % 2 == 0 ? scale : -scale);
        bytes(out + 2, 16);
        return;
      }
      default: {  // q4_1: 0..15 above the least
        const float scale = tensor_.deviation / 4.61F;
        half(out, scale);
        half(out + 2, -7.5F * scale);
        bytes(out + 4, 16);
      }
    }
  }

  const Planned& tensor_;
  Random random_;
  std::array<std::uint16_t, 4096> halves_{};  // f16 values to draw from
};

std::vector<Planned> plan(const SyntheticOptions& o) {
  const ModelConfig& c = o.config;
  const DataType table = o.type == DataType::f16 ? DataType::f16 : DataType::q8_0;
  const auto deviation = [](std::int64_t cols) { return 1.0F / std::sqrt(static_cast<float>(cols)); };
  std::vector<Planned> tensors;
  tensors.push_back({"token_embd.weight", table, c.vocab, c.hidden, 0.0F, 4.0F * deviation(c.hidden)});
  if (c.parts.learned_positions) {
    tensors.push_back({"position_embd.weight", DataType::f16, c.context + c.parts.position_offset, c.hidden,
                       0.0F, deviation(c.hidden)});
  }
  if (!c.rope_factors.empty())
    tensors.push_back({"rope_freqs.weight", DataType::f32, 1, std::ssize(c.rope_factors), 0.0F, 0.0F});
  // Each branch adds a 1 / (2L)-th of the variance that the residual ends with.
  const float branch = 1.0F / std::sqrt(2.0F * static_cast<float>(c.layers));
  for (int layer = 0; layer < c.layers; ++layer) {
    for (const LayerTensorRow& row : layer_tensor_table()) {
      if (!row.wanted(c.parts)) continue;
      const std::string_view name = row.name;
      const std::int64_t rows = extent(row.rows, c), cols = extent(row.cols, c);
      Planned tensor{fmt::format("blk.{}.{}", layer, name), o.type, rows, cols, 0.0F, deviation(cols)};
      if (name == "attn_output.weight" || name == "ffn_down.weight") tensor.deviation *= branch;
      if (row.rows == Side::one) {
        const bool weight = name.ends_with(".weight");
        tensor.type = DataType::f32;
        tensor.mean = weight ? 1.0F : 0.0F;
        tensor.deviation = weight ? 0.05F : 0.02F;
      }
      tensors.push_back(std::move(tensor));
    }
  }
  tensors.push_back({"output_norm.weight", DataType::f32, 1, c.hidden, 1.0F, 0.05F});
  if (c.parts.norm_bias) tensors.push_back({"output_norm.bias", DataType::f32, 1, c.hidden, 0.0F, 0.02F});
  if (!c.tied_head)
    tensors.push_back({"output.weight", table, c.vocab, c.hidden, 0.0F, 4.0F * deviation(c.hidden)});
  return tensors;
}

void write_vocabulary(GgufWriter& w, std::int64_t vocab) {
  std::vector<std::string> tokens, merges;
  std::vector<std::int32_t> types;
  for (int byte = 0; byte < 256; ++byte) {
    append_printable(tokens.emplace_back(), static_cast<unsigned char>(byte));
    types.push_back(1);
  }
  for (const auto& [left, right] : {std::pair{"t", "h"}, {"th", "e"}, {"i", "n"}, {"e", "r"}}) {
    merges.push_back(fmt::format("{} {}", left, right));
    tokens.push_back(fmt::format("{}{}", left, right));
    types.push_back(1);
  }
  const auto eos = static_cast<std::uint32_t>(tokens.size());
  for (const char* name : {"<|endoftext|>", "<|im_start|>", "<|im_end|>"}) {
    tokens.emplace_back(name);
    types.push_back(3);
  }
  while (std::cmp_less(tokens.size(), vocab)) {
    tokens.push_back(fmt::format("[PAD{}]", tokens.size()));
    types.push_back(5);
  }
  w.key("tokenizer.ggml.model", "gpt2");
  w.key("tokenizer.ggml.pre", "gpt-2");
  w.key("tokenizer.ggml.tokens", tokens);
  w.key("tokenizer.ggml.token_type", types);
  w.key("tokenizer.ggml.merges", merges);
  w.key("tokenizer.ggml.bos_token_id", eos);
  w.key("tokenizer.ggml.eos_token_id", eos);
  w.key("tokenizer.chat_template",
        "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
        "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}");
}

void write_keys(GgufWriter& w, const SyntheticOptions& o) {
  const ModelConfig& c = o.config;
  const auto count = [&](const char* name, std::int64_t value) {
    w.key(fmt::format("{}.{}", c.architecture, name), static_cast<std::uint32_t>(value));
  };
  w.key("general.architecture", c.architecture);
  w.key("general.name", c.name);
  w.key(kSyntheticSeedKey, o.seed);
  count("block_count", c.layers);
  count("context_length", c.context);
  count("embedding_length", c.hidden);
  count("feed_forward_length", c.feed_forward);
  count("attention.head_count", c.heads);
  count("attention.head_count_kv", c.kv_heads);
  count("attention.key_length", c.head_dim);
  count("attention.value_length", c.head_dim);
  const bool rms = c.parts.norm == gpu::NormPack::Kind::rms;
  w.key(fmt::format("{}.attention.layer_norm_{}epsilon", c.architecture, rms ? "rms_" : ""), c.norm_epsilon);
  if (c.parts.rope != RopeKind::none) {
    count("rope.dimension_count", c.rope_dims);
    w.key(fmt::format("{}.rope.freq_base", c.architecture), c.rope_base);
  }
  if (c.parts.learned_positions) count("position_offset", c.parts.position_offset);
  write_vocabulary(w, c.vocab);
}

/// Everything but the weights.
Result<void> declare(GgufWriter& w, const SyntheticOptions& o, const std::vector<Planned>& tensors) {
  if (o.type != DataType::f16 && o.type != DataType::q8_0 && o.type != DataType::q4_0 &&
      o.type != DataType::q4_1) {
    return fail(Errc::bad_request, fmt::format("random {} weights are not made: F16, Q8_0, Q4_0 and Q4_1 are",
                                               to_string(o.type)));
  }
  if (Result<void> ok = o.config.check(o.config.name); !ok) return ok;
  write_keys(w, o);
  for (const Planned& t : tensors) {
    if (t.cols % gpu::block_elements(t.type) != 0)
      return fail(Errc::bad_request, fmt::format("{}: {} columns are not whole blocks", t.name, t.cols));
    w.tensor(t.name, t.type, t.rows, t.cols);
  }
  return {};
}

Result<void> check_room(const std::string& path, std::uint64_t bytes) {
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::absolute(path, error).parent_path();
  const std::filesystem::space_info space = std::filesystem::space(folder, error);
  if (error) return fail(Errc::io_error, fmt::format("{}: {}", folder.string(), error.message()));
  if (space.available >= bytes) return {};
  return fail(Errc::io_error,
              fmt::format("{} would have {} bytes, the disk has {} free: choose fewer --layers or "
                          "another folder",
                          path, bytes, space.available));
}

}  // namespace

Result<std::uint64_t> synthetic_bytes(const SyntheticOptions& options) {
  GgufWriter writer;
  if (Result<void> ok = declare(writer, options, plan(options)); !ok) return ok.error();
  return writer.file_bytes();
}

Result<void> write_synthetic_model(const std::string& path, const SyntheticOptions& o) {
  const std::vector<Planned> tensors = plan(o);
  GgufWriter writer;
  if (Result<void> ok = declare(writer, o, tensors); !ok) return ok;
  if (Result<void> ok = check_room(path, writer.file_bytes()); !ok) return ok;
  if (Result<void> ok = writer.open(path); !ok) return ok;
  std::vector<std::byte> piece;
  std::uint64_t done = 0;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const Planned& t = tensors[i];
    Filler filler(t, (std::uint64_t{o.seed} << 32U) + i);
    std::uint64_t left = gpu::row_bytes(t.type, t.cols) * static_cast<std::uint64_t>(t.rows);
    const std::size_t most = kPieceBytes / gpu::block_bytes(t.type) * gpu::block_bytes(t.type);
    while (left > 0) {
      piece.resize(static_cast<std::size_t>(std::min<std::uint64_t>(left, most)));
      if (t.name == "rope_freqs.weight") {
        std::memcpy(piece.data(), o.config.rope_factors.data(), piece.size());
      } else {
        filler.fill(piece);
      }
      if (Result<void> ok = writer.append(piece); !ok) return ok;
      left -= piece.size();
      done += piece.size();
      if (o.progress) o.progress(done);
    }
  }
  return writer.finish();
}

}  // namespace helios::model
