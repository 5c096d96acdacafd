#include "model/synthetic_model.hpp"

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "model/gguf_writer.hpp"
#include "model/synthetic_shapes.hpp"
#include "test/model/tiny_checkpoints.hpp"

namespace helios::test {

namespace {

/// A shape's architecture at a size for tests.
model::SyntheticOptions small(const char* shape, gpu::DataType type, std::uint32_t seed = 7) {
  model::SyntheticOptions o;
  o.config = must(model::synthetic_shape(shape));
  model::ModelConfig& c = o.config;
  c.layers = 3;
  c.hidden = 64;
  c.feed_forward = 96;
  c.heads = 4;
  c.kv_heads = c.parts.learned_positions ? 4 : 2;
  c.head_dim = 16;
  c.vocab = 300;
  c.context = 64;
  if (c.parts.rope != model::RopeKind::none) c.rope_dims = 16;
  if (!c.rope_factors.empty()) c.rope_factors = model::llama3_factors({.factor = 8}, 16, c.rope_base);
  o.type = type;
  o.seed = seed;
  return o;
}

std::string bytes_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

TEST_CASE("Synthetic models: every architecture and type runs, finite, and says what it is", "[model]") {
  const TempFile path(".gguf");
  for (const char* shape : {"opt-1.3b", "llama2-7b", "llama3.2-1b", "qwen2.5-0.5b"}) {
    for (const gpu::DataType type :
         {gpu::DataType::f16, gpu::DataType::q8_0, gpu::DataType::q4_0, gpu::DataType::q4_1}) {
      INFO(shape << " " << gpu::to_string(type));
      const model::SyntheticOptions options = small(shape, type);
      must(model::write_synthetic_model(path.path(), options));
      CHECK(std::filesystem::file_size(path.path()) == must(model::synthetic_bytes(options)));
      Loaded l = load_tiny(path.path(), gpu::Kernels::fast);
      CHECK(l.file->synthetic() == 7);
      CHECK(l.file->layer(1).up->type == type);
      CHECK(l.file->config().rope_factors == options.config.rope_factors);
      double squares = 0.0;
      const std::vector<float> logits = logits_at(l, some_ids(20, 3, 300), 3);
      for (const float x : logits) squares += double{x} * x;
      const double rms = std::sqrt(squares / static_cast<double>(logits.size()));
      CHECK(rms > 0.5);  // a dead model has none
      CHECK(rms < 50.0);
    }
  }
}

TEST_CASE("Quantised on load: Q4_K where columns are whole blocks of 256, close to Q4_1", "[model]") {
  const TempFile path(".gguf");
  model::SyntheticOptions options = small("llama2-7b", gpu::DataType::f16);
  options.config.hidden = 256;
  options.config.feed_forward = 288;
  options.config.head_dim = options.config.rope_dims = 64;
  must(model::write_synthetic_model(path.path(), options));
  const auto ids = some_ids(20, 3, 300);
  const auto logits = [&](model::Quant quant) {
    Loaded l = load_tiny(path.path(), gpu::Kernels::fast, quant);
    if (quant == model::Quant::q4_k) {
      CHECK(l.file->layer(0).up->held == gpu::DataType::q4_k);
      CHECK(l.file->layer(0).down->held == gpu::DataType::q4_1);  // 288 columns
      CHECK(l.file->globals().head->held == gpu::DataType::q8_0);
    }
    return logits_at(l, ids, 3);
  };
  const std::vector<float> exact = logits(model::Quant::none), zero(exact.size());
  const double size = difference(exact, zero).rms;
  const double k = difference(logits(model::Quant::q4_k), exact).rms / size,
               one = difference(logits(model::Quant::q4_1), exact).rms / size;
  std::printf("quantised on load: q4_k %.4f, q4_1 %.4f of the logits\n", k, one);
  CHECK(k < 0.2);
  CHECK(k < 1.5 * one);
}

TEST_CASE("Synthetic models: a seed is all that decides", "[model]") {
  const TempFile a(".gguf"), b(".gguf");
  must(model::write_synthetic_model(a.path(), small("llama2-7b", gpu::DataType::q4_1)));
  must(model::write_synthetic_model(b.path(), small("llama2-7b", gpu::DataType::q4_1)));
  CHECK(bytes_of(a.path()) == bytes_of(b.path()));
  must(model::write_synthetic_model(b.path(), small("llama2-7b", gpu::DataType::q4_1, 8)));
  CHECK(bytes_of(a.path()) != bytes_of(b.path()));
}

TEST_CASE("Synthetic models: true sizes; what cannot be made is refused and leaves no file", "[model]") {
  const auto gigabytes = [](const char* shape, gpu::DataType type) {
    model::SyntheticOptions o;
    o.config = must(model::synthetic_shape(shape));
    o.type = type;
    return static_cast<double>(must(model::synthetic_bytes(o))) / 1e9;
  };
  // Parameters x bytes: 1.32e9 x 34/32, 6.66e9 x 2, 6.74e9 x 18/32 with embedding and head at 34/32.
  CHECK(std::abs(gigabytes("opt-1.3b", gpu::DataType::q8_0) - 1.40) < 0.02);
  CHECK(std::abs(gigabytes("opt-6.7b", gpu::DataType::f16) - 13.32) < 0.05);
  CHECK(std::abs(gigabytes("llama2-7b", gpu::DataType::q4_0) - 3.92) < 0.05);

  CHECK(model::synthetic_shape("gpt-5").error().message.find("opt-1.3b") != std::string::npos);
  const TempFile path(".gguf");
  model::SyntheticOptions odd = small("llama2-7b", gpu::DataType::q8_0);
  odd.config.feed_forward = 100;
  CHECK(model::write_synthetic_model(path.path(), odd).error().code == Errc::bad_request);
  CHECK(model::write_synthetic_model(path.path(), small("llama2-7b", gpu::DataType::bf16)).error().code ==
        Errc::bad_request);
  model::SyntheticOptions huge = small("llama2-7b", gpu::DataType::q8_0);
  huge.config.hidden = 1 << 20;
  huge.config.layers = 1024;
  const auto refused = model::write_synthetic_model(path.path(), huge);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().message.find("free") != std::string::npos);
  CHECK_FALSE(std::filesystem::exists(path.path()));
  CHECK_FALSE(std::filesystem::exists(path.path() + ".part"));
  CHECK(
      model::write_synthetic_model("/nowhere/x.gguf", small("llama2-7b", gpu::DataType::q8_0)).error().code ==
      Errc::io_error);
}

TEST_CASE("GgufWriter: bytes must be those that were declared; an unfinished file goes", "[model]") {
  const TempFile path(".gguf");
  const std::vector<std::byte> bytes(64);
  {
    model::GgufWriter writer;
    writer.tensor("a", gpu::DataType::f32, 1, 10);
    writer.tensor("b", gpu::DataType::q8_0, 2, 32);
    must(writer.open(path.path()));
    CHECK_FALSE(writer.append(std::span(bytes).first(44)).has_value());
    must(writer.append(std::span(bytes).first(40)));
    CHECK(writer.finish().error().code == Errc::bad_request);
    must(writer.append(std::span(bytes).first(34)));
    must(writer.append(std::span(bytes).first(34)));
    CHECK_FALSE(writer.append(std::span(bytes).first(1)).has_value());
    must(writer.finish());
    CHECK(std::filesystem::file_size(path.path()) == writer.file_bytes());
  }
  const auto file = must(model::GgufFile::open(path.path()));
  CHECK(file->tensors().size() == 2);
  {
    model::GgufWriter writer;
    writer.tensor("a", gpu::DataType::f32, 1, 10);
    must(writer.open(path.path() + "2"));
  }
  CHECK_FALSE(std::filesystem::exists(path.path() + "2.part"));
}

}  // namespace helios::test
