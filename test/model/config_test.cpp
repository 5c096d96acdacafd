#include "model/config.hpp"

#include <fstream>

#include "test/model/model_fixture.hpp"

namespace helios::test {

namespace {

/// The file with `from` replaced by `to` of the same length, wherever it stands.
void patch(const std::string& path, const std::string& from, const std::string& to) {
  REQUIRE(from.size() == to.size());
  std::ifstream in(path, std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(in)), {});
  std::size_t found = 0;
  for (std::size_t at = bytes.find(from); at != std::string::npos; at = bytes.find(from, at + to.size())) {
    bytes.replace(at, from.size(), to);
    ++found;
  }
  REQUIRE(found > 0);
  std::ofstream(path, std::ios::binary) << bytes;
}

}  // namespace

TEST_CASE("ModelConfig: the shape of a file", "[model]") {
  const TempFile path(".gguf");
  write_tiny_model(path.path(),
                   {.layers = 3, .hidden = 64, .heads = 4, .kv_heads = 2, .feed_forward = 96, .vocab = 300});
  const auto file = must(model::ModelFile::open(path.path()));
  const model::ModelConfig& c = file->config();
  CHECK(c.layers == 3);
  CHECK(c.hidden == 64);
  CHECK(c.feed_forward == 96);
  CHECK(c.head_dim == 16);
  CHECK(c.kv_width() == 32);
  CHECK(c.vocab == 300);
  CHECK(c.tied_head);
  CHECK(file->tokenizer().is_end(kTinyEndOfText));
  CHECK(file->chat_template() != nullptr);
}

TEST_CASE("ModelConfig: what we cannot run is refused by name", "[model]") {
  const auto refused = [](const std::string& from, const std::string& to, Errc code, const char* named) {
    const TempFile path(".gguf");
    write_tiny_model(path.path());
    patch(path.path(), from, to);
    const auto file = model::ModelFile::open(path.path());
    REQUIRE_FALSE(file.has_value());
    CHECK(file.error().code == code);
    CHECK(file.error().message.find(named) != std::string::npos);
  };
  const std::string length("\x05\0\0\0\0\0\0\0", 8);  // of the string that follows
  refused(length + "llama", length + "gemma", Errc::unsupported, "gemma");
  refused("llama.block_count", "llama.block_xount", Errc::bad_file, "llama.block_count");
  refused("blk.3.ffn_down.weight", "blk.3.ffn_xxxx.weight", Errc::bad_file, "blk.3.ffn_down.weight");
  refused("llama.attention.head_count_kv", "llama.attention.head_count_xx", Errc::bad_file, "attn_k");
}

}  // namespace helios::test
