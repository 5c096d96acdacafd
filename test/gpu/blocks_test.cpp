// Blocks of GGUF's types against the floats another reader makes of them (data/blocks/README.md).

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "gpu/file_blocks.hpp"
#include "gpu/half.hpp"
#include "test/gpu/kernel_cases.hpp"

namespace helios::gpu::test {

namespace {

struct Golden {
  DataType type = DataType::f32;
  std::int64_t rows = 0, cols = 0;
  std::vector<std::byte> bytes;
  std::vector<float> values;
};

std::vector<Golden> load_golden() {
  std::ifstream in(HELIOS_TEST_DATA "/blocks/blocks.bin", std::ios::binary);
  const auto read = [&in](void* to, std::size_t size) {
    in.read(static_cast<char*>(to), static_cast<std::streamsize>(size));
    REQUIRE(in.good());
  };
  const auto u32 = [&read] {
    std::uint32_t value = 0;
    read(&value, 4);
    return value;
  };
  char magic[8];
  read(magic, 8);
  REQUIRE(std::memcmp(magic, "HELBLK1", 8) == 0);
  std::vector<Golden> all(u32());
  for (Golden& golden : all) {
    char name[9] = {};
    read(name, 8);
    const auto* type = std::find_if(std::begin(kTypes), std::end(kTypes),
                                    [&](DataType known) { return to_string(known) == name; });
    REQUIRE(type != std::end(kTypes));
    golden.type = *type;
    golden.rows = u32();
    golden.cols = u32();
    golden.bytes.resize(u32());
    REQUIRE(golden.bytes.size() == row_bytes(*type, golden.cols) * static_cast<std::size_t>(golden.rows));
    read(golden.bytes.data(), golden.bytes.size());
    golden.values.resize(static_cast<std::size_t>(golden.rows * golden.cols));
    read(golden.values.data(), golden.values.size() * sizeof(float));
  }
  return all;
}

/// What gpu/matrix.hpp allows column c of a packed row: nothing, or for K types the rounding of its scale and
/// minimum to fp16.
float packing_error(DataType type, const std::byte* row, std::int64_t c) {
  if (type < DataType::q4_k) return 0.0F;
  const FileBlock block = read_block(type, row, c / 32);
  const auto k = static_cast<std::size_t>(c % 32);
  const float q = std::abs(static_cast<float>(int{block.q[k]} - block.offset));
  const auto rounding = [](float v) { return std::max(std::abs(v) * 0x1p-11F, 0x1p-25F); };
  // 1e-6: the products and the sum are floats too.
  return q * rounding(block.scale[k / 16]) + rounding(block.minimum) + 1e-6F * std::abs(block.minimum);
}

}  // namespace

TEST_CASE("file blocks: every quantised type reads as gguf reads it", "[gpu]") {
  const std::vector<Golden> all = load_golden();
  CHECK(all.size() ==
        static_cast<std::size_t>(std::count_if(std::begin(kTypes), std::end(kTypes),
                                               [](DataType type) { return is_quantised(type); })));
  for (const Golden& golden : all) {
    INFO(to_string(golden.type));
    std::vector<float> got(golden.values.size());
    for (std::int64_t row = 0; row < golden.rows; ++row) {
      dequantise_row(
          golden.type,
          golden.bytes.data() + row * static_cast<std::int64_t>(row_bytes(golden.type, golden.cols)),
          golden.cols, got.data() + row * golden.cols);
    }
    CHECK(got == golden.values);  // as floats: a zero's sign is free
  }
}

TEST_CASE("panels: packed rows are the file's, K types within the rounding of their scales", "[gpu]") {
  for (const Golden& golden : load_golden()) {
    INFO(to_string(golden.type));
    Memory panels(packed_matrix_bytes(golden.type, golden.rows, golden.cols));
    pack_panels(golden.type, golden.rows, golden.cols, golden.bytes.data(), panels.data());
    const Matrix packed{packed_type(golden.type), golden.rows, golden.cols, panels.data()};
    std::vector<float> got(static_cast<std::size_t>(golden.cols));
    std::int64_t beyond = 0, different = 0;
    for (std::int64_t row = 0; row < golden.rows; ++row) {
      unpack_row(packed, row, got.data());
      const std::byte* bytes =
          golden.bytes.data() + row * static_cast<std::int64_t>(row_bytes(golden.type, golden.cols));
      for (std::int64_t c = 0; c < golden.cols; ++c) {
        const float error = std::abs(got[static_cast<std::size_t>(c)] -
                                     golden.values[static_cast<std::size_t>(row * golden.cols + c)]);
        beyond += error <= packing_error(golden.type, bytes, c) ? 0 : 1;
        different += error > 0.0F ? 1 : 0;
      }
    }
    CHECK(beyond == 0);
    CHECK((different > 0) == (golden.type >= DataType::q4_k));
  }
}

}  // namespace helios::gpu::test
