#include "test/support/tiny_model.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <stdexcept>

#include "gpu/half.hpp"
#include "model/vocabulary.hpp"

namespace helios::test {

namespace {

using gpu::DataType;

constexpr std::uint64_t kAlignment = 32;
constexpr const char* kTemplate =
    "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + "
    "'<|im_end|>' + "
    "'\n'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";

class Writer {
 public:
  template <class T>
  void put(T value) {
    const auto* bytes = reinterpret_cast<const char*>(&value);
    out_.insert(out_.end(), bytes, bytes + sizeof(T));
  }
  void text(const std::string& value) {
    put<std::uint64_t>(value.size());
    out_.insert(out_.end(), value.begin(), value.end());
  }
  void key(const std::string& name, std::uint32_t type) {
    text(name);
    put(type);
    ++keys_;
  }
  void u32(const std::string& name, int value) {
    key(name, 4);
    put(static_cast<std::uint32_t>(value));
  }
  void f32(const std::string& name, float value) {
    key(name, 6);
    put(value);
  }
  void str(const std::string& name, const std::string& value) {
    key(name, 8);
    text(value);
  }
  void strings(const std::string& name, const std::vector<std::string>& values) {
    key(name, 9);
    put<std::uint32_t>(8);
    put<std::uint64_t>(values.size());
    for (const std::string& value : values) text(value);
  }
  void integers(const std::string& name, const std::vector<std::int32_t>& values) {
    key(name, 9);
    put<std::uint32_t>(5);
    put<std::uint64_t>(values.size());
    for (const std::int32_t value : values) put(value);
  }
  std::uint64_t keys() const { return keys_; }
  std::vector<char>& bytes() { return out_; }

 private:
  std::vector<char> out_;
  std::uint64_t keys_ = 0;
};

template <class T>
void append(std::vector<char>& out, T value) {
  const auto* bytes = reinterpret_cast<const char*>(&value);
  out.insert(out.end(), bytes, bytes + sizeof(T));
}

void encode_block(DataType type, const float* x, std::vector<char>& out) {
  if (type == DataType::q8_0) {
    float largest = 0.0F;
    for (int i = 0; i < 32; ++i) largest = std::max(largest, std::abs(x[i]));
    const float d = largest / 127.0F;
    append(out, gpu::float_to_half(d));
    for (int i = 0; i < 32; ++i) append(out, static_cast<std::int8_t>(d > 0 ? std::lround(x[i] / d) : 0));
    return;
  }
  const auto [low, high] = std::minmax_element(x, x + 32);
  const float d = (*high - *low) / 15.0F;
  append(out, gpu::float_to_half(d));
  append(out, gpu::float_to_half(*low));
  auto nibble = [&](int i) {
    return static_cast<unsigned>(std::clamp(d > 0 ? std::lround((x[i] - *low) / d) : 0L, 0L, 15L));
  };
  for (int i = 0; i < 16; ++i) append(out, static_cast<std::uint8_t>(nibble(i) | (nibble(i + 16) << 4U)));
}

std::vector<char> encode(DataType type, const std::vector<float>& x) {
  std::vector<char> out;
  switch (type) {
    case DataType::f32:
      for (const float value : x) append(out, value);
      return out;
    case DataType::f16:
      for (const float value : x) append(out, gpu::float_to_half(value));
      return out;
    case DataType::q8_0:
    case DataType::q4_1:
      for (std::size_t i = 0; i < x.size(); i += 32) encode_block(type, x.data() + i, out);
      return out;
    default:
      throw std::runtime_error("write_tiny_model: type " + std::string(to_string(type)) + " is not written");
  }
}

std::uint32_t gguf_type(DataType type) {
  switch (type) {
    case DataType::f32:
      return 0;
    case DataType::f16:
      return 1;
    case DataType::q4_1:
      return 3;
    case DataType::q8_0:
      return 8;
    default:
      throw std::runtime_error("write_tiny_model: no such type");
  }
}

std::string utf8(char32_t c) {
  if (c < 0x80) return {static_cast<char>(c)};
  return {static_cast<char>(0xC0U | (c >> 6U)), static_cast<char>(0x80U | (c & 0x3FU))};  // all below 0x800
}

void write_vocabulary(Writer& w, int vocab) {
  std::vector<std::string> tokens;
  std::vector<std::int32_t> types;
  for (int byte = 0; byte < 256; ++byte)
    tokens.push_back(utf8(model::printable_of_byte(static_cast<unsigned char>(byte))));
  types.assign(tokens.size(), 1);
  for (const char* name : {"<|endoftext|>", "<|im_start|>", "<|im_end|>"}) {
    tokens.emplace_back(name);
    types.push_back(3);
  }
  std::vector<std::string> merges;
  for (const auto& [left, right] : {std::pair{"h", "e"}, {"l", "l"}, {"t", "h"}, {"i", "n"}, {"he", "ll"}}) {
    merges.push_back(std::string(left) + " " + right);
    tokens.push_back(std::string(left) + right);
    types.push_back(1);
  }
  for (int i = 0; std::cmp_less(tokens.size(), vocab); ++i) {
    tokens.push_back("<unused" + std::to_string(i) + ">");
    types.push_back(5);
  }
  w.str("tokenizer.ggml.model", "gpt2");
  w.str("tokenizer.ggml.pre", "smollm");
  w.strings("tokenizer.ggml.tokens", tokens);
  w.integers("tokenizer.ggml.token_type", types);
  w.strings("tokenizer.ggml.merges", merges);
  w.u32("tokenizer.ggml.bos_token_id", kTinyTurnStart);
  w.u32("tokenizer.ggml.eos_token_id", kTinyEndOfText);
  w.str("tokenizer.chat_template", kTemplate);
}

struct Tensor {
  std::string name;
  DataType type;
  std::vector<std::uint64_t> dims;  // the file's order
  std::vector<char> bytes;
};

}  // namespace

void write_tiny_model(const std::string& path, const TinyModelOptions& o) {
  std::mt19937_64 random(o.seed);
  auto values = [&](std::size_t n, float span, float middle = 0.0F) {
    std::vector<float> x(n);
    for (float& v : x) v = middle + span * (static_cast<float>(random() >> 40U) * 0x1p-23F - 1.0F);
    return x;
  };
  const int head_dim = o.hidden / o.heads;
  std::vector<Tensor> tensors;
  auto matrix = [&](const std::string& name, DataType type, int rows, int cols, float gain) {
    const auto n = static_cast<std::size_t>(rows) * static_cast<std::size_t>(cols);
    const float span = gain * std::sqrt(3.0F / static_cast<float>(cols));
    tensors.push_back({name,
                       type,
                       {static_cast<std::uint64_t>(cols), static_cast<std::uint64_t>(rows)},
                       encode(type, values(n, span))});
  };
  auto norm = [&](const std::string& name) {
    tensors.push_back({name,
                       DataType::f32,
                       {static_cast<std::uint64_t>(o.hidden)},
                       encode(DataType::f32, values(static_cast<std::size_t>(o.hidden), 0.3F, 1.0F))});
  };
  matrix("token_embd.weight", o.head_type, o.vocab, o.hidden, std::sqrt(static_cast<float>(o.hidden)));
  norm("output_norm.weight");
  for (int layer = 0; layer < o.layers; ++layer) {
    const std::string p = "blk." + std::to_string(layer) + ".";
    norm(p + "attn_norm.weight");
    matrix(p + "attn_q.weight", o.type, o.hidden, o.hidden, 2.0F);
    matrix(p + "attn_k.weight", o.type, o.kv_heads * head_dim, o.hidden, 2.0F);
    matrix(p + "attn_v.weight", o.type, o.kv_heads * head_dim, o.hidden, 1.0F);
    matrix(p + "attn_output.weight", o.type, o.hidden, o.hidden, 1.0F);
    norm(p + "ffn_norm.weight");
    matrix(p + "ffn_gate.weight", o.type, o.feed_forward, o.hidden, 1.0F);
    matrix(p + "ffn_up.weight", o.type, o.feed_forward, o.hidden, 1.0F);
    matrix(p + "ffn_down.weight", o.type, o.hidden, o.feed_forward, 1.5F);
  }

  Writer w;
  w.str("general.architecture", "llama");
  w.str("general.name", "tiny");
  w.u32("llama.block_count", o.layers);
  w.u32("llama.context_length", o.context);
  w.u32("llama.embedding_length", o.hidden);
  w.u32("llama.feed_forward_length", o.feed_forward);
  w.u32("llama.attention.head_count", o.heads);
  w.u32("llama.attention.head_count_kv", o.kv_heads);
  w.f32("llama.attention.layer_norm_rms_epsilon", 1e-5F);
  w.f32("llama.rope.freq_base", 10000.0F);
  w.u32("llama.rope.dimension_count", head_dim);
  write_vocabulary(w, o.vocab);

  Writer head;
  head.put<std::uint32_t>(0x46554747);  // "GGUF"
  head.put<std::uint32_t>(3);
  head.put<std::uint64_t>(tensors.size());
  head.put<std::uint64_t>(w.keys());
  std::vector<char>& out = head.bytes();
  out.insert(out.end(), w.bytes().begin(), w.bytes().end());
  std::uint64_t offset = 0;
  for (const Tensor& tensor : tensors) {
    head.text(tensor.name);
    head.put(static_cast<std::uint32_t>(tensor.dims.size()));
    for (const std::uint64_t dim : tensor.dims) head.put(dim);
    head.put(gguf_type(tensor.type));
    head.put(offset);
    offset += (tensor.bytes.size() + kAlignment - 1) / kAlignment * kAlignment;
  }
  auto pad = [&] { out.resize((out.size() + kAlignment - 1) / kAlignment * kAlignment); };
  pad();
  for (const Tensor& tensor : tensors) {
    out.insert(out.end(), tensor.bytes.begin(), tensor.bytes.end());
    pad();
  }
  std::ofstream file(path, std::ios::binary);
  file.write(out.data(), static_cast<std::streamsize>(out.size()));
  file.close();
  if (!file) throw std::runtime_error("write_tiny_model: cannot write " + path);
}

TempFile::TempFile(const std::string& suffix) {
  static std::atomic<int> count{0};
  path_ = (std::filesystem::temp_directory_path() /
           ("helios-" + std::to_string(getpid()) + "-" + std::to_string(++count) + suffix))
              .string();
}

TempFile::~TempFile() {
  std::error_code ignored;
  std::filesystem::remove(path_, ignored);
}

}  // namespace helios::test
