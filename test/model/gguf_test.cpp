#include "model/gguf.hpp"

#include <catch2/catch_test_macros.hpp>
#include <iostream>

#include "test/support/gguf_writer.hpp"
#include "test/support/model_path.hpp"

using namespace helios;
using model::GgufFile;
using test::GgufWriter;

namespace {

Result<std::shared_ptr<const GgufFile>> parse(const std::string& bytes,
                                              const model::GgufLimits& limits = {}) {
  return GgufFile::parse(model::memory_source(std::as_bytes(std::span(bytes))), "test.gguf", limits);
}

void check_refused(const std::string& bytes, const char* says, Errc code = Errc::bad_file) {
  const auto parsed = parse(bytes);
  REQUIRE(!parsed);
  INFO(parsed.error().message);
  CHECK(parsed.error().code == code);
  CHECK(parsed.error().message.find("test.gguf: ") == 0);
  CHECK(parsed.error().message.find(says) != std::string::npos);
}

// Two tensors (64 bytes of F32, 40 of Q4_1 at 64) and a key of each kind.
GgufWriter good() {
  GgufWriter writer;
  writer.key("s", "text")
      .key("u8", GgufWriter::kU8, "\xFF")
      .key("i8", GgufWriter::kI8, "\xFF")
      .key("u32", GgufWriter::kU32, GgufWriter::raw(std::uint32_t{4'000'000'000}))
      .key("u64", GgufWriter::kU64, GgufWriter::raw(std::uint64_t{1} << 40))
      .key("i64", GgufWriter::kI64, GgufWriter::raw(std::int64_t{-5}))
      .key("f32", GgufWriter::kF32, GgufWriter::raw(1.5F))
      .key("f64", GgufWriter::kF64, GgufWriter::raw(2.5))
      .key("nan", GgufWriter::kF32, GgufWriter::raw(std::numeric_limits<float>::quiet_NaN()))
      .key("yes", GgufWriter::kBool, "\x01")
      .key("names", std::vector<std::string>{"a", "", "c"})
      .key("ints", GgufWriter::kArray,
           GgufWriter::raw(std::uint32_t{GgufWriter::kI16}) + GgufWriter::raw(std::uint64_t{2}) +
               GgufWriter::raw(std::int16_t{-1}) + GgufWriter::raw(std::int16_t{7}))
      .key("floats", GgufWriter::kArray,
           GgufWriter::raw(std::uint32_t{GgufWriter::kF32}) + GgufWriter::raw(std::uint64_t{1}) +
               GgufWriter::raw(0.5F))
      .tensor("norm", {8, 2}, 0, 0)
      .tensor("weight", {64, 1}, 3, 64);
  return writer;
}

}  // namespace

TEST_CASE("GgufFile: metadata of every kind, tensors and their bytes", "[model]") {
  for (const std::uint32_t version : {2U, 3U}) {
    GgufWriter writer = good();
    writer.version = version;
    const std::string bytes = writer.bytes(104);
    const auto parsed = parse(bytes);
    if (!parsed) FAIL(parsed.error().message);
    const GgufFile& file = **parsed;
    CHECK(file.version() == version);
    CHECK(file.str("s").value() == "text");
    CHECK(file.u32("u8").value() == 255);
    CHECK(file.i64("i8").value() == -1);
    CHECK(file.u32("u32").value() == 4'000'000'000);
    CHECK(file.i64("u64").value() == std::int64_t{1} << 40);
    CHECK(file.f32("f32").value() == 1.5F);
    CHECK(file.f32("f64").value() == 2.5F);
    CHECK(file.boolean("yes").value());
    CHECK(file.strings("names").value()[2] == "c");
    CHECK(file.integers("ints").value()[0] == -1);
    CHECK(file.floats("floats").value()[0] == 0.5);
    CHECK(file.u32_or("absent", 9).value() == 9);
    CHECK(file.str_or("absent", "x").value() == "x");
    CHECK(!file.u32_or("s", 9));
    for (const auto& error :
         {file.u32("absent").error(), file.u32("u64").error(), file.u32("i64").error(),
          file.u32("f32").error(), file.f32("nan").error(), file.strings("ints").error()}) {
      CHECK(error.code == Errc::bad_file);
      CHECK(error.message.find("metadata key '") != std::string::npos);
    }
    CHECK(file.u32("f32").error().message.find("is a float; an integer is needed") != std::string::npos);
    const model::GgufTensor* weight = file.require("weight").value();
    CHECK(weight->type == gpu::DataType::q4_1);
    CHECK(weight->bytes == 40);
    CHECK(weight->cols() == 64);
    CHECK(weight->rows() == 1);
    CHECK(weight->file_offset == file.data_offset() + 64);
    CHECK(file.find("absent") == nullptr);
    CHECK(file.require("absent").error().message.find("'absent' is missing") != std::string::npos);
    std::vector<std::byte> read(40);
    REQUIRE(file.read(*weight, read).has_value());
    CHECK(read[0] == std::byte{64});
    CHECK(read[39] == std::byte{103});
  }
}

TEST_CASE("GgufFile: every truncation is refused, never read past", "[model]") {
  const std::string whole = good().bytes(104);
  REQUIRE(parse(whole).has_value());
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const auto parsed = parse(whole.substr(0, size));
    INFO(size);
    REQUIRE(!parsed);
    CHECK((parsed.error().code == Errc::bad_file));
  }
}

TEST_CASE("GgufFile: wrong beginnings", "[model]") {
  check_refused("", "not a GGUF file");
  check_refused("GGML....................", "not a GGUF file");
  GgufWriter old;
  old.version = 1;
  check_refused(old.bytes(), "version 1", Errc::unsupported);
  old.version = 0x03000000;
  check_refused(old.bytes(), "big-endian", Errc::unsupported);
}

TEST_CASE("GgufFile: counts that no file can hold are refused before anything is allocated", "[model]") {
  for (const std::uint64_t count : {std::uint64_t{1} << 20, std::uint64_t{1} << 40, ~std::uint64_t{0}}) {
    GgufWriter keys;
    keys.key_count = count;
    check_refused(keys.bytes(), "metadata keys");
    GgufWriter tensors;
    tensors.tensor_count = count;
    check_refused(tensors.bytes(), "tensors");
    GgufWriter array;
    array.key("a", GgufWriter::kArray,
              GgufWriter::raw(std::uint32_t{GgufWriter::kU8}) + GgufWriter::raw(count));
    check_refused(array.bytes(), "metadata key 'a': an array of");
    GgufWriter text;
    text.key("a", GgufWriter::kString, GgufWriter::raw(count));
    check_refused(text.bytes(), "metadata key 'a': ");
    GgufWriter dims;
    dims.tensor("t", {count, count}, 0, 0);
    check_refused(dims.bytes(), "tensor 't'");
  }
}

TEST_CASE("GgufFile: wrong metadata is refused, naming the key", "[model]") {
  check_refused(GgufWriter().key("a", "x").key("a", "y").bytes(), "'a' appears twice");
  check_refused(GgufWriter().key("", "x").bytes(), "without a name");
  check_refused(GgufWriter().key("a", 13, "").bytes(), "'a': unknown value type 13");
  check_refused(GgufWriter().key("a", GgufWriter::kBool, "\x02").bytes(), "'a': a boolean of value 2");
  check_refused(GgufWriter().key("a", GgufWriter::kU64, std::string(8, '\xFF')).bytes(),
                "'a': an integer beyond");
  check_refused(GgufWriter()
                    .key("a", GgufWriter::kArray,
                         GgufWriter::raw(std::uint32_t{99}) + GgufWriter::raw(std::uint64_t{0}))
                    .bytes(),
                "'a': an array of unknown value type");
  check_refused(
      GgufWriter()
          .key("a", GgufWriter::kArray,
               GgufWriter::raw(std::uint32_t{GgufWriter::kArray}) + GgufWriter::raw(std::uint64_t{0}))
          .bytes(),
      "'a': an array of arrays", Errc::unsupported);
  for (const std::uint32_t alignment : {0U, 1U, 33U, 1U << 30}) {
    check_refused(GgufWriter().key("general.alignment", GgufWriter::kU32, GgufWriter::raw(alignment)).bytes(),
                  "general.alignment is");
  }
}

TEST_CASE("GgufFile: wrong tensors are refused, naming them", "[model]") {
  check_refused(GgufWriter().tensor("t", {4}, 0, 0).tensor("t", {4}, 0, 32).bytes(64), "'t' appears twice");
  check_refused(GgufWriter().tensor("", {4}, 0, 0).bytes(64), "without a name");
  check_refused(GgufWriter().tensor("t", {}, 0, 0).bytes(64), "'t' has 0 dimensions");
  check_refused(GgufWriter().tensor("t", {1, 1, 1, 1, 1}, 0, 0).bytes(64), "'t' has 5 dimensions");
  check_refused(GgufWriter().tensor("t", {4, 0}, 0, 0).bytes(64), "'t': dimension 1 is 0");
  check_refused(GgufWriter().tensor("t", {1ULL << 40, 1ULL << 40}, 0, 0).bytes(64), "'t': dimension 1");
  check_refused(GgufWriter().tensor("t", {31}, 8, 0).bytes(64),
                "'t': rows of 31 elements do not fill blocks of 32");
  check_refused(GgufWriter().tensor("t", {256}, 10, 0).bytes(256), "'t' is of type Q2_K", Errc::unsupported);
  check_refused(GgufWriter().tensor("t", {256}, 777, 0).bytes(256), "'t' is of unknown type 777");
  check_refused(GgufWriter().tensor("t", {4}, 0, 4).bytes(64), "'t' begins at offset 4, not a multiple");
  check_refused(GgufWriter().tensor("t", {16}, 0, 32).bytes(64), "'t' reaches beyond the end");
  check_refused(GgufWriter().tensor("t", {4}, 0, ~std::uint64_t{31}).bytes(64), "'t' reaches beyond the end");
  check_refused(GgufWriter().tensor("t", {16}, 0, 0).tensor("u", {8}, 0, 32).bytes(96),
                "'t' and 'u' overlap");
  check_refused(GgufWriter().tensor("t", {8}, 0, 0).tensor("u", {8}, 0, 0).bytes(96), "overlap");
  check_refused(GgufWriter().tensor(std::string(300, 'x'), {8}, 0, 0).bytes(96),
                "a tensor name of 300 bytes");
}

TEST_CASE("GgufFile: another alignment moves the data", "[model]") {
  const std::string bytes =
      GgufWriter()
          .key("general.alignment", GgufWriter::kU32, GgufWriter::raw(std::uint32_t{256}))
          .tensor("t", {4}, 1, 256)
          .bytes(264, 256);
  const auto parsed = parse(bytes);
  if (!parsed) FAIL(parsed.error().message);
  CHECK((*parsed)->data_offset() % 256 == 0);
  std::vector<std::byte> read(8);
  REQUIRE((*parsed)->read((*parsed)->tensors()[0], read).has_value());
  CHECK(read[1] == std::byte{1});
}

TEST_CASE("GgufFile: limits can be tightened", "[model]") {
  model::GgufLimits limits;
  limits.header_bytes = 300;
  CHECK(parse(good().bytes(104), limits).error().message.find("longer than 300 bytes") != std::string::npos);
  model::GgufLimits few;
  few.array_elements = 4;  // of all arrays together: there are 6
  CHECK(!parse(good().bytes(104), few));
}

TEST_CASE("GgufFile: a file that cannot be opened says why", "[model]") {
  CHECK(GgufFile::open(HELIOS_TEST_DATA "/no-such.gguf").error().code == Errc::io_error);
  CHECK(GgufFile::open(HELIOS_TEST_DATA).error().code == Errc::io_error);
}

TEST_CASE("GgufFile: the header of SmolLM2", "[model][models]") {
  const auto path = test::smollm2_path();
  if (!path) {
    std::cout << "SKIPPED: the header of SmolLM2 (the model is absent: tools/setup.sh fetches it)\n";
    return;
  }
  const auto file = GgufFile::open(*path);
  if (!file) FAIL(file.error().message);
  CHECK((*file)->tensors().size() == 272);
  CHECK((*file)->str("general.architecture").value() == "llama");
  CHECK((*file)->u32("llama.block_count").value() == 30);
  const model::GgufTensor* table = (*file)->require("token_embd.weight").value();
  CHECK(table->type == gpu::DataType::q8_0);
  CHECK(table->bytes == 30081024);
  CHECK(table->file_offset == 1785664);
}
