// Exit heads against a plain twin in double precision: its own loops, Hugging Face's row order and rotation.

#include "model/exits.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <map>

#include "test/model/model_fixture.hpp"

namespace helios::test {

namespace {

using Vector = std::vector<float>;
using Rows = std::vector<std::vector<double>>;

struct Array {
  std::vector<int> shape;
  Vector values;
};
using Arrays = std::map<std::string, Array>;
using Metadata = std::map<std::string, std::string>;

void write_safetensors(const std::string& path, const Arrays& arrays, const Metadata& metadata) {
  std::string header = "{\"__metadata__\":{";
  for (const auto& [key, value] : metadata)
    header += fmt::format("{}\"{}\":\"{}\"", header.back() == '{' ? "" : ",", key, value);
  header += "}";
  std::size_t at = 0;
  std::string data;
  for (const auto& [name, array] : arrays) {
    const std::size_t bytes = array.values.size() * 4;
    header += fmt::format(",\"{}\":{{\"dtype\":\"F32\",\"shape\":[", name);
    for (std::size_t i = 0; i < array.shape.size(); ++i)
      header += fmt::format("{}{}", i ? "," : "", array.shape[i]);
    header += fmt::format("],\"data_offsets\":[{},{}]}}", at, at + bytes);
    data.append(reinterpret_cast<const char*>(array.values.data()), bytes);
    at += bytes;
  }
  header += "}";
  while (header.size() % 8 != 0) header += ' ';
  const std::uint64_t length = header.size();
  std::ofstream out(path, std::ios::binary);
  out.write(reinterpret_cast<const char*>(&length), 8);
  out << header << data;
}

Array random_array(std::vector<int> shape, int seed, float span, float middle = 0.0F) {
  Array array{std::move(shape), {}};
  int count = 1;
  for (const int n : array.shape) count *= n;
  const auto ids = some_ids(count, seed, 20001);
  for (const std::int32_t id : ids)
    array.values.push_back(middle + span * (static_cast<float>(id) / 10000.0F - 1.0F));
  return array;
}

struct TwinLayer {
  Vector attention_norm, q, k, v, o, feed_forward_norm, gate, up, down;
  bool half_rotation = false;
};

/// A plain Llama of one sequence.
class Twin {
 public:
  explicit Twin(const model::ModelFile& file) : file_(file), c_(file.config()) {}

  Vector tensor(const std::string& name) const {
    const auto* t = must(file_.checkpoint().require(name));
    REQUIRE(t->type == gpu::DataType::f32);
    Vector values(static_cast<std::size_t>(t->rows() * t->cols()));
    must(file_.checkpoint().read(*t, std::as_writable_bytes(std::span(values))));
    return values;
  }
  TwinLayer layer(int l) const {
    const auto get = [&](const char* name) { return tensor(fmt::format("blk.{}.{}.weight", l, name)); };
    return {get("attn_norm"), get("attn_q"),   get("attn_k"), get("attn_v"),   get("attn_output"),
            get("ffn_norm"),  get("ffn_gate"), get("ffn_up"), get("ffn_down"), false};
  }
  /// Rows of q or k from GGUF's order (neighbouring pairs) to Hugging Face's (halves).
  Vector to_hugging_face(const Vector& w, int heads) const {
    const std::size_t cols = static_cast<std::size_t>(c_.hidden),
                      dim = w.size() / cols / static_cast<std::size_t>(heads);
    Vector out(w.size());
    for (std::size_t h = 0; h < static_cast<std::size_t>(heads); ++h) {
      for (std::size_t pair = 0; pair < dim / 2; ++pair) {
        for (std::size_t side = 0; side < 2; ++side) {
          std::copy_n(w.begin() + static_cast<std::ptrdiff_t>((h * dim + 2 * pair + side) * cols), cols,
                      out.begin() + static_cast<std::ptrdiff_t>((h * dim + side * dim / 2 + pair) * cols));
        }
      }
    }
    return out;
  }

  Rows hidden(std::span<const std::int32_t> ids, int depth) const {
    const Vector table = tensor("token_embd.weight");
    Rows x;
    for (const std::int32_t id : ids) {
      const auto first = table.begin() + id * c_.hidden;
      x.emplace_back(first, first + c_.hidden);
    }
    for (int l = 0; l < depth; ++l) run(layer(l), x);
    return x;
  }

  void run(const TwinLayer& w, Rows& x) const {
    const int heads = c_.heads, group = c_.heads / c_.kv_heads, dim = c_.head_dim;
    Rows q, k, v;
    for (std::size_t p = 0; p < x.size(); ++p) {
      const auto n = norm(x[p], w.attention_norm);
      q.push_back(times(w.q, n));
      k.push_back(times(w.k, n));
      v.push_back(times(w.v, n));
      rotate(q.back(), p, w.half_rotation);
      rotate(k.back(), p, w.half_rotation);
    }
    for (std::size_t p = 0; p < x.size(); ++p) {
      std::vector<double> attended(static_cast<std::size_t>(heads * dim), 0.0);
      for (int h = 0; h < heads; ++h) {
        std::vector<double> share;
        double sum = 0.0;
        for (std::size_t j = 0; j <= p; ++j) {
          double score = 0.0;
          for (int i = 0; i < dim; ++i) score += q[p][at(h * dim + i)] * k[j][at(h / group * dim + i)];
          share.push_back(std::exp(score / std::sqrt(dim)));
          sum += share.back();
        }
        for (std::size_t j = 0; j <= p; ++j) {
          for (int i = 0; i < dim; ++i)
            attended[at(h * dim + i)] += share[j] / sum * v[j][at(h / group * dim + i)];
        }
      }
      add(x[p], times(w.o, attended));
      const auto n = norm(x[p], w.feed_forward_norm);
      auto gate = times(w.gate, n);
      const auto up = times(w.up, n);
      for (std::size_t i = 0; i < gate.size(); ++i) gate[i] = gate[i] / (1.0 + std::exp(-gate[i])) * up[i];
      add(x[p], times(w.down, gate));
    }
  }

  std::vector<double> norm(const std::vector<double>& x, const Vector& weight) const {
    double sum = 0.0;
    for (const double v : x) sum += v * v;
    const double scale = 1.0 / std::sqrt(sum / static_cast<double>(x.size()) + c_.norm_epsilon);
    std::vector<double> y(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) y[i] = x[i] * scale * weight[i];
    return y;
  }
  static std::vector<double> times(const Vector& w, const std::vector<double>& x) {
    std::vector<double> y(w.size() / x.size(), 0.0);
    for (std::size_t r = 0; r < y.size(); ++r) {
      for (std::size_t c = 0; c < x.size(); ++c) y[r] += double{w[r * x.size() + c]} * x[c];
    }
    return y;
  }
  static void add(std::vector<double>& x, const std::vector<double>& y) {
    for (std::size_t i = 0; i < x.size(); ++i) x[i] += y[i];
  }

 private:
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }
  void rotate(std::vector<double>& x, std::size_t position, bool half) const {
    const int dim = c_.head_dim;
    for (int first = 0; std::cmp_less(first, x.size()); first += dim) {
      for (int i = 0; i < dim / 2; ++i) {
        const double angle = static_cast<double>(position) * std::pow(c_.rope_base, -2.0 * i / dim);
        double& a = x[at(first + (half ? i : 2 * i))];
        double& b = x[at(first + (half ? i + dim / 2 : 2 * i + 1))];
        const double turned = a * std::cos(angle) - b * std::sin(angle);
        b = a * std::sin(angle) + b * std::cos(angle);
        a = turned;
      }
    }
  }
  const model::ModelFile& file_;
  const model::ModelConfig& c_;
};

Metadata identity(const model::ModelFile& file) {
  return {{"layers", std::to_string(file.config().layers)},
          {"hidden", std::to_string(file.config().hidden)},
          {"vocab", std::to_string(file.config().vocab)},
          {"vocab_hash", file.tokenizer().vocab_hash()},
          {"norms_hash", must(model::norms_hash(file.checkpoint(), file.config().layers))}};
}

void check_near(std::span<const float> logits, const std::vector<double>& expected) {
  REQUIRE(logits.size() == expected.size());
  double largest = 0.0, size = 0.0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    largest = std::max(largest, std::abs(logits[i] - expected[i]));
    size = std::max(size, std::abs(expected[i]));
  }
  CHECK(size > 0.1);
  CHECK(largest < 2e-4 * std::max(1.0, size));
}

/// Exits of every kind: 2 norm, head and adapter; 3 a whole block; 4 low-rank deltas to layer 5 (0-based 4).
Arrays all_parts() {
  Arrays a;
  a["exits.2.adapter.weight"] = random_array({64, 64}, 11, 0.2F);
  a["exits.2.adapter.bias"] = random_array({64}, 12, 0.5F);
  a["exits.2.norm.weight"] = random_array({64}, 13, 0.3F, 1.0F);
  a["exits.2.head.weight"] = random_array({320, 64}, 14, 0.3F);
  const std::pair<const char*, std::vector<int>> shapes[] = {
      {"self_attn.q_proj", {64, 64}}, {"self_attn.k_proj", {32, 64}}, {"self_attn.v_proj", {32, 64}},
      {"self_attn.o_proj", {64, 64}}, {"mlp.gate_proj", {128, 64}},   {"mlp.up_proj", {128, 64}},
      {"mlp.down_proj", {64, 128}}};
  int seed = 20;
  for (const auto& [name, shape] : shapes)
    a[fmt::format("exits.3.block.{}.weight", name)] = random_array(shape, ++seed, 0.25F);
  a["exits.3.block.input_layernorm.weight"] = random_array({64}, 31, 0.3F, 1.0F);
  a["exits.3.block.post_attention_layernorm.weight"] = random_array({64}, 32, 0.3F, 1.0F);
  for (const char* name : {"self_attn.q_proj", "self_attn.k_proj", "mlp.down_proj"}) {
    const int in = std::string_view(name) == "mlp.down_proj" ? 128 : 64;
    const int out = std::string_view(name) == "self_attn.k_proj" ? 32 : 64;
    a[fmt::format("exits.4.block.{}.lora_a", name)] = random_array({4, in}, ++seed, 0.3F);
    a[fmt::format("exits.4.block.{}.lora_b", name)] = random_array({out, 4}, ++seed, 0.3F);
  }
  return a;
}

Vector plus_delta(Vector w, const Array& a, const Array& b, double scale) {
  const auto rank = static_cast<std::size_t>(a.shape[0]), cols = static_cast<std::size_t>(a.shape[1]);
  for (std::size_t row = 0; row < w.size() / cols; ++row) {
    for (std::size_t c = 0; c < cols; ++c) {
      double sum = 0.0;
      for (std::size_t r = 0; r < rank; ++r) sum += double{b.values[row * rank + r]} * a.values[r * cols + c];
      w[row * cols + c] += static_cast<float>(scale * sum);
    }
  }
  return w;
}

struct WithExits {
  TempFile gguf{".gguf"}, exits{".exits.safetensors"};
  Arrays arrays = all_parts();
  Metadata metadata;

  WithExits() {
    write_tiny_model(gguf.path(), {.seed = 21});
    metadata = identity(*must(model::ModelFile::open(gguf.path())));
    metadata["exits.3.threshold"] = "0.75";
    metadata["exits.4.block.base_layer"] = "4";
    metadata["exits.4.block.lora_scale"] = "0.5";
    metadata["provenance"] = "exits_test";
    write_safetensors(exits.path(), arrays, metadata);
  }
};

}  // namespace

TEST_CASE("Exits: every depth through the shared head equals the twin", "[model]") {
  const TempFile path(".gguf");
  write_tiny_model(path.path(), {.seed = 3});
  Loaded l = Loaded::make(path.path(), 6, {.kv_type = gpu::DataType::f32, .max_rows = 32, .max_outputs = 1});
  const Twin twin(*l.file);
  const auto ids = some_ids(13, 8);
  for (const int depth : {1, 4, 6}) {
    model::Sequential sequence(*l.transformer, depth);
    const auto result = must(sequence.feed(ids, {}, true));
    check_near(result.logits,
               Twin::times(twin.tensor("token_embd.weight"),
                           twin.norm(twin.hidden(ids, depth).back(), twin.tensor("output_norm.weight"))));
  }
}

TEST_CASE("Exits: adapter, norm, head, block and low-rank deltas equal the twin, also after catch-up",
          "[model]") {
  const WithExits files;
  Loaded l = Loaded::make(
      files.gguf.path(), 6,
      {.kv_type = gpu::DataType::f32, .row_type = gpu::DataType::f32, .max_rows = 32, .max_outputs = 1},
      gpu::Kernels::fast, std::size_t{64} << 20, files.exits.path());
  CHECK(l.file->exit_layers() == std::vector<int>{2, 3, 4});
  CHECK(l.file->threshold(3) == 0.75F);
  CHECK_FALSE(l.file->threshold(2).has_value());
  CHECK(l.device->budget().used(gpu::Use::weights) == l.transformer->weight_bytes());
  const Twin twin(*l.file);
  const auto ids = some_ids(13, 8);
  const auto get = [&](const std::string& name) -> const Array& { return files.arrays.at("exits." + name); };
  const auto head = twin.tensor("token_embd.weight"), norm = twin.tensor("output_norm.weight");

  std::map<int, std::vector<double>> expected;
  auto adapted = Twin::times(get("2.adapter.weight").values, twin.hidden(ids, 2).back());
  for (std::size_t i = 0; i < adapted.size(); ++i) adapted[i] += get("2.adapter.bias").values[i];
  expected[2] = Twin::times(get("2.head.weight").values, twin.norm(adapted, get("2.norm.weight").values));
  const auto part = [&](const char* name) { return get(fmt::format("3.block.{}.weight", name)).values; };
  Rows rows = twin.hidden(ids, 3);
  twin.run({part("input_layernorm"), part("self_attn.q_proj"), part("self_attn.k_proj"),
            part("self_attn.v_proj"), part("self_attn.o_proj"), part("post_attention_layernorm"),
            part("mlp.gate_proj"), part("mlp.up_proj"), part("mlp.down_proj"), true},
           rows);
  expected[3] = Twin::times(head, twin.norm(rows.back(), norm));
  TwinLayer merged = twin.layer(4);
  const auto delta = [&](const Vector& w, const std::string& name) {
    return plus_delta(w, get("4.block." + name + ".lora_a"), get("4.block." + name + ".lora_b"), 0.5);
  };
  merged.half_rotation = true;
  merged.q = delta(twin.to_hugging_face(merged.q, 4), "self_attn.q_proj");
  merged.k = delta(twin.to_hugging_face(merged.k, 2), "self_attn.k_proj");
  merged.down = delta(merged.down, "mlp.down_proj");
  rows = twin.hidden(ids, 4);
  twin.run(merged, rows);
  expected[4] = Twin::times(head, twin.norm(rows.back(), norm));

  for (const auto& [depth, logits] : expected) {
    model::Sequential sequence(*l.transformer, depth);
    check_near(must(sequence.feed(ids, {}, true, 5)).logits, logits);
  }
  // A block's own keys and values are filled by catch-up too.
  model::Sequential sequence(*l.transformer, 2);
  must(sequence.feed(std::span(ids).first(12)));
  must(sequence.catch_up(4, 5));
  check_near(must(sequence.feed(std::span(ids).last(1), {}, true)).logits, expected[4]);
}

TEST_CASE("Exits: a file of another model, or with what we do not know, is refused by name", "[model]") {
  const WithExits files;
  const auto refused = [&](auto change, Errc code, const char* named) {
    Arrays arrays = files.arrays;
    Metadata metadata = files.metadata;
    change(arrays, metadata);
    const TempFile path(".exits.safetensors");
    write_safetensors(path.path(), arrays, metadata);
    const auto file = model::ModelFile::open(files.gguf.path(), path.path());
    REQUIRE_FALSE(file.has_value());
    CHECK(file.error().code == code);
    CHECK(file.error().message.find(named) != std::string::npos);
  };
  refused([](Arrays&, Metadata& m) { m["norms_hash"] = "0123456789abcdef"; }, Errc::bad_request,
          "norms_hash");
  refused([](Arrays&, Metadata& m) { m["vocab_hash"] = "0"; }, Errc::bad_request, "vocab_hash");
  refused([](Arrays&, Metadata& m) { m["layers"] = "7"; }, Errc::bad_request, "layers");
  refused([](Arrays&, Metadata& m) { m.erase("hidden"); }, Errc::bad_file, "hidden");
  refused([](Arrays&, Metadata& m) { m["exits.3.threshold"] = "1.5"; }, Errc::bad_file, "threshold");
  refused([](Arrays&, Metadata& m) { m.erase("exits.4.block.base_layer"); }, Errc::bad_file, "exit 4");
  refused([](Arrays& a, Metadata&) { a["exits.9.norm.weight"] = a["exits.2.norm.weight"]; }, Errc::bad_file,
          "outside 1..6");
  refused([](Arrays& a, Metadata&) { a["exits.2.nose.weight"] = a["exits.2.norm.weight"]; }, Errc::bad_file,
          "nose");
  refused([](Arrays& a, Metadata&) { a["exits.2.norm.weight"] = random_array({63}, 1, 1.0F); },
          Errc::bad_file, "1 x 63");
  refused([](Arrays& a, Metadata&) { a.erase("exits.4.block.mlp.down_proj.lora_b"); }, Errc::bad_file,
          "lora_b");
}

}  // namespace helios::test
