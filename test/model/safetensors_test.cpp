#include "model/safetensors.hpp"

#include <catch2/catch_test_macros.hpp>
#include <cstring>

using namespace helios;
using model::Safetensors;

namespace {

struct File {
  std::string bytes;
  Result<std::shared_ptr<const Safetensors>> parse() const {
    return Safetensors::parse(model::memory_source(std::as_bytes(std::span(bytes))), "test.safetensors");
  }
};

File file_of(const std::string& header, std::size_t data_bytes) {
  File file;
  const std::uint64_t length = header.size();
  file.bytes.assign(reinterpret_cast<const char*>(&length), 8);
  file.bytes += header;
  for (std::size_t i = 0; i < data_bytes; ++i) file.bytes += static_cast<char>(i);
  return file;
}

void check_refused(const std::string& header, std::size_t data_bytes, const char* says,
                   Errc code = Errc::bad_file) {
  INFO(header);
  const File file = file_of(header, data_bytes);
  const auto parsed = file.parse();
  REQUIRE(!parsed);
  CHECK(parsed.error().code == code);
  CHECK(parsed.error().message.find("test.safetensors: ") == 0);
  INFO(parsed.error().message);
  CHECK(parsed.error().message.find(says) != std::string::npos);
}

const std::string kTwo =
    R"( {"__metadata__":{"format":"pt","n\u00e9\n":"\ud83d\ude00"},"b":{"dtype":"F32","shape":[2,3],"data_offsets":[8,32]},)"
    R"("a":{"dtype":"BF16","shape":[4],"data_offsets":[0,8]}}  )";

}  // namespace

TEST_CASE("Safetensors: tensors, metadata and bytes", "[model]") {
  const File file = file_of(kTwo, 32);
  const auto parsed = file.parse();
  if (!parsed) FAIL(parsed.error().message);
  const Safetensors& tensors = **parsed;
  REQUIRE(tensors.tensors().size() == 2);
  CHECK(tensors.tensors()[0].name == "a");  // by their place
  const model::SafetensorsTensor* b = tensors.require("b").value();
  CHECK(b->rows() == 2);
  CHECK(b->cols() == 3);
  CHECK(b->type == model::SafetensorsType::f32);
  CHECK(model::device_type(b->type) == gpu::DataType::f32);
  CHECK(!model::device_type(model::SafetensorsType::i64));
  CHECK(tensors.metadata_value("format").value() == "pt");
  CHECK(tensors.metadata_value("né\n").value() == "😀");
  CHECK(tensors.metadata_value("absent").error().message.find("'absent'") != std::string::npos);
  CHECK(tensors.find("c") == nullptr);
  CHECK(tensors.require("c").error().code == Errc::bad_file);
  std::vector<std::byte> bytes(24);
  REQUIRE(tensors.read(*b, bytes).has_value());
  CHECK(bytes[0] == std::byte{8});
  CHECK(bytes[23] == std::byte{31});
  CHECK(!tensors.read(*b, std::span(bytes).first(23)));
}

TEST_CASE("Safetensors: empty and scalar tensors", "[model]") {
  CHECK(file_of("{}", 0).parse().has_value());
  const File file = file_of(
      R"({"s":{"dtype":"F32","shape":[],"data_offsets":[0,4]},"z":{"dtype":"F32","shape":[0,7],"data_offsets":[0,0]}})",
      4);
  const auto parsed = file.parse();
  if (!parsed) FAIL(parsed.error().message);
  CHECK((*parsed)->find("s")->bytes == 4);
  CHECK((*parsed)->find("z")->bytes == 0);
}

TEST_CASE("Safetensors: what the format forbids is refused, naming the tensor", "[model]") {
  check_refused(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", 4,
                "'a' has 4 bytes, but its shape needs 8");
  check_refused(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 3, "'a' reaches beyond the end");
  check_refused(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}})", 4, "'a' reaches beyond the end");
  check_refused(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 5,
                "bytes after the last tensor");
  check_refused(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", 8, "leaves a hole");
  check_refused(
      R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
      4, "'b' overlaps");
  check_refused(
      R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
      8, "'a' appears twice");
  check_refused(R"({"a":{"dtype":"F8_E4M3","shape":[1],"data_offsets":[0,1]}})", 1, "'F8_E4M3'",
                Errc::unsupported);
  check_refused(R"({"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}})", 0,
                "larger than any file");
  check_refused(R"({"a":{"dtype":"F32","shape":[99999999999999999999],"data_offsets":[0,0]}})", 0,
                "too large");
  check_refused(R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,0]}})", 0, "whole number");
  check_refused(R"({"a":{"dtype":"F32","shape":[1,1,1,1,1,1,1,1,1],"data_offsets":[0,4]}})", 4,
                "more than 8 numbers");
  check_refused(R"({"a":{"dtype":"F32","shape":[1]}})", 0, "needs dtype, shape and two data_offsets");
  check_refused(R"({"a":{"dtype":"F32","dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 4, "twice");
  check_refused(R"({"__metadata__":{"a":"1","a":"2"}})", 0, "appears twice");
  check_refused(R"({"__metadata__":{"a":1}})", 0, "no string");
  check_refused(R"({"a":{"dtype":"F32")", 0, "end of a tensor");
  check_refused(R"([])", 0, "not a JSON object");
  check_refused(R"({} x)", 0, "no end");
  check_refused("{\"a\\u00", 0, "valid escape");
  check_refused("{\"\\ud800\":", 0, "valid escape");
}

TEST_CASE("Safetensors: every truncation and every header length is refused cleanly", "[model]") {
  const File whole = file_of(kTwo, 32);
  for (std::size_t size = 0; size < whole.bytes.size(); ++size) {
    CHECK(!File{whole.bytes.substr(0, size)}.parse());
  }
  File longer = whole;
  const std::uint64_t huge = ~std::uint64_t{0};
  std::memcpy(longer.bytes.data(), &huge, 8);
  CHECK(!longer.parse());
}

TEST_CASE("Safetensors: a file that cannot be opened says why", "[model]") {
  const auto opened = Safetensors::open(HELIOS_TEST_DATA "/no-such.safetensors");
  REQUIRE(!opened);
  CHECK(opened.error().code == Errc::io_error);
  CHECK(Safetensors::open(HELIOS_TEST_DATA).error().code == Errc::io_error);
}
