// Each architecture against transformers, on tiny random checkpoints (test/data/tiny/README.md).

#include "test/model/tiny_checkpoints.hpp"
#include "model/synthetic_model.hpp"
#include "model/synthetic_shapes.hpp"

#include <cmath>
#include <cstdio>

namespace helios::test {

namespace {

constexpr const char* kNames[] = {"llama", "llama3", "llama_bias", "qwen2", "opt"};

/// Logits reach 25: 24 bits of mantissa, and a few hundred sums in another order.
constexpr double kFloatTolerance = 2e-4;

}  // namespace

TEST_CASE("Tiny checkpoints: folder and GGUF twin give transformers' logits", "[model][tiny]") {
  for (const std::string name : kNames) {
    const Expected expected = Expected::load(name);
    for (const std::string& path : {tiny(name), tiny(name + ".gguf")}) {
      INFO(path);
      Loaded l = load_tiny(path);
      const int layers = l.file->config().layers;
      const Difference d = difference(logits_at(l, expected.ids, layers), expected.logits);
      CHECK(d.largest < kFloatTolerance);
      std::printf("%s: largest difference %.2e, rms %.2e\n", path.substr(path.rfind('/') + 1).c_str(),
                  d.largest, d.rms);
    }
  }
}

TEST_CASE("Tiny checkpoints: any layer is an exit through the model's norm and head", "[model][tiny]") {
  for (const std::string name : kNames) {
    const Expected expected = Expected::load(name);
    for (const std::string& path : {tiny(name), tiny(name + ".gguf")}) {
      Loaded l = load_tiny(path);
      const auto vocab = static_cast<std::size_t>(l.file->config().vocab);
      for (int depth = 1; depth < l.file->config().layers; ++depth) {
        INFO(path << " after layer " << depth);
        const std::vector<float> logits = logits_at(l, expected.ids, depth);
        const auto wanted =
            std::span(expected.exits).subspan(static_cast<std::size_t>(depth - 1) * vocab, vocab);
        CHECK(difference(std::span(logits).last(vocab), wanted).largest < kFloatTolerance);
      }
    }
  }
}

TEST_CASE("Tiny checkpoints: fast kernels and quantised loads keep within the stated error",
          "[model][tiny]") {
  using model::Quant;
  // Random weights and sharp attention: a trained model, whose layers do not decide by a hair, is far closer.
  struct Row {
    Quant quant;
    const char* name;
    double rms;  // of the logits, as a share of their own rms
  };
  for (const Row& row :
       {Row{Quant::none, "none", 1e-4}, Row{Quant::q8_0, "q8_0", 0.08}, Row{Quant::q4_1, "q4_1", 0.55}}) {
    for (const std::string name : kNames) {
      INFO(name << " as " << row.name);
      const Expected expected = Expected::load(name);
      Loaded l = load_tiny(tiny(name), gpu::Kernels::fast, row.quant);
      const std::vector<float> zero(expected.logits.size());
      const double size = difference(expected.logits, zero).rms;
      const Difference d = difference(logits_at(l, expected.ids, l.file->config().layers), expected.logits);
      CHECK(d.rms / size < row.rms);
      std::printf("%s %s: rms %.5f of the logits'\n", name.c_str(), row.name, d.rms / size);
    }
  }
}

TEST_CASE("Tiny checkpoints: an OPT folder leaves through an exits file's parts", "[model][tiny]") {
  const Expected expected = Expected::load("opt");
  for (const char* name : {"opt", "opt.gguf"}) {
    INFO(name);
    Loaded l =
        load_tiny(tiny(name), gpu::Kernels::reference, model::Quant::none, tiny("opt.exits.safetensors"));
    CHECK(l.file->exit_layers() == std::vector<int>{1});
    CHECK(l.file->threshold(1) == 0.7F);
    CHECK(difference(logits_at(l, expected.ids, 1), expected.head).largest < kFloatTolerance);
    CHECK(difference(logits_at(l, expected.ids, 3), expected.logits).largest < kFloatTolerance);
  }
}

TEST_CASE("Tiny checkpoints: text becomes transformers' ids; both formats have one vocabulary",
          "[model][tiny]") {
  const std::string text =
      "the quick brown fox jumps over the lazy dog and the hen tells the tale in ten inns";
  for (const std::string name : kNames) {
    INFO(name);
    const auto folder = must(model::ModelFile::open(tiny(name)));
    const auto gguf = must(model::ModelFile::open(tiny(name + ".gguf")));
    std::vector<std::int32_t> ids = folder->tokenizer().encode(text, true);
    if (folder->tokenizer().add_bos()) ids.insert(ids.begin(), folder->tokenizer().bos_id().value());
    const std::vector<std::int32_t> wanted = Expected::load(name).ids;
    REQUIRE(ids.size() >= wanted.size());
    ids.resize(wanted.size());
    CHECK(ids == wanted);
    CHECK(folder->tokenizer().vocab_hash() == gguf->tokenizer().vocab_hash());
    CHECK(folder->tokenizer().is_end(106));  // generation_config.json's second end token
    CHECK(folder->tokenizer().eos_id() == 104);
    REQUIRE(folder->suggested_sampling() != nullptr);
    CHECK(folder->suggested_sampling()->temperature == 0.6F);
    REQUIRE(folder->chat_template() != nullptr);
    const model::ChatMessage message{"user", "hello"};
    CHECK(must(folder->chat_template()->render({&message, 1}, true)) ==
          "<|im_start|>user\nhello<|im_end|>\n<|im_start|>assistant\n");
  }
}

TEST_CASE("Tiny checkpoints: loading reads only the bytes of its layers", "[model][tiny]") {
  for (const std::string name : kNames) {
    for (const std::string& path : {tiny(name), tiny(name + ".gguf")}) {
      INFO(path);
      Loaded l = load_tiny(path, gpu::Kernels::fast, model::Quant::none, "", 1);
      // GGUF's RoPE factors belong to the configuration: they are read when the file is opened.
      std::size_t bytes = l.file->global_bytes() + l.file->layer_bytes(0);
      CHECK(l.file->checkpoint().bytes_read() == bytes);
      for (int layer = 1; layer < l.file->config().layers; ++layer) {
        must(model::load_layers(*l.device, l.file, *l.transformer, layer + 1));
        bytes += l.file->layer_bytes(layer);
        CHECK(l.file->checkpoint().bytes_read() == bytes);
      }
    }
  }
}

namespace {

/// Remembers how far into a file anybody read.
class CountingSource final : public model::ByteSource {
 public:
  explicit CountingSource(const std::string& path) : file_(must(model::open_file_source(path))) {}
  std::uint64_t size() const noexcept override { return file_->size(); }
  Result<void> read_at(std::uint64_t offset, std::span<std::byte> out) const override {
    bytes += out.size();
    end = std::max(end, offset + out.size());
    return file_->read_at(offset, out);
  }
  mutable std::uint64_t bytes = 0, end = 0;

 private:
  std::shared_ptr<const model::ByteSource> file_;
};

}  // namespace

TEST_CASE("Tiny checkpoints: opening reads headers only", "[model][tiny]") {
  for (const char* name : {"llama/model.safetensors", "llama3/model-00002-of-00003.safetensors"}) {
    const auto source = std::make_shared<CountingSource>(tiny(name));
    const auto file = must(model::Safetensors::parse(source, name));
    CHECK(source->bytes == file->tensors().front().file_offset);
    CHECK(source->end == file->tensors().front().file_offset);
  }
  // GGUF's header has no length: it is read a window at a time, so the file is made larger than that.
  const TempFile path(".gguf");
  model::SyntheticOptions options{.config = must(model::synthetic_shape("opt-125m"))};
  options.config.layers = 1;
  must(model::write_synthetic_model(path.path(), options));
  const auto source = std::make_shared<CountingSource>(path.path());
  const auto file = must(model::GgufFile::parse(source, "synthetic"));
  CHECK(source->end < file->data_offset() + (256 << 10));
  CHECK(source->size() > 40U << 20U);
}

}  // namespace helios::test
