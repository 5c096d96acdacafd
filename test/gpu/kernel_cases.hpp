#pragma once
// Inputs for both bodies of an op, and where they live.

#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "gpu/half.hpp"
#include "gpu/kernels/kernel_table.hpp"

namespace helios::gpu::test {

/// 64-byte aligned memory of a test.
class Memory {
 public:
  explicit Memory(std::size_t bytes)
      : size_((bytes + 127) / 64 * 64), data_(new (std::align_val_t{64}) std::byte[size_]) {
    std::memset(data_, 0, size_);
  }
  ~Memory() { ::operator delete[](data_, std::align_val_t{64}); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  std::byte* data() const { return data_; }

 private:
  std::size_t size_;
  std::byte* data_;
};

inline std::vector<float> random_floats(std::size_t count, unsigned seed, float scale = 1.0F) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0.0F, scale);
  std::vector<float> out(count);
  for (float& v : out) v = normal(random);
  return out;
}

/// Every type that files have.
inline constexpr DataType kTypes[] = {DataType::f32,  DataType::f16,  DataType::bf16, DataType::q8_0,
                                      DataType::q4_0, DataType::q4_1, DataType::q5_0, DataType::q5_1,
                                      DataType::q4_k, DataType::q5_k, DataType::q6_k};

/// A weight matrix of a file, random bytes with sensible scales, and its panels.
struct Weights {
  Weights(DataType type, std::int64_t rows, std::int64_t cols, unsigned seed)
      : file(row_bytes(type, cols) * static_cast<std::size_t>(rows)),
        panels(packed_matrix_bytes(type, rows, cols)) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal(0.0F, 0.05F);
    std::byte* at = file.data();
    for (std::int64_t i = 0; i < rows * cols / block_elements(type); ++i, at += block_bytes(type)) {
      const float value = normal(random);
      if (is_quantised(type)) {
        for (std::size_t k = 0; k < block_bytes(type); ++k) at[k] = static_cast<std::byte>(random() & 255U);
      }
      const float d = std::abs(value) * 0.1F + 1e-4F;
      switch (type) {
        case DataType::f32:
          std::memcpy(at, &value, 4);
          break;
        case DataType::f16:
          put16(at, float_to_half(value));
          break;
        case DataType::bf16:
          put16(at, float_to_bfloat(value));
          break;
        case DataType::q4_1:
        case DataType::q5_1:
          put16(at + 2, float_to_half(value));
          [[fallthrough]];
        case DataType::q8_0:
        case DataType::q4_0:
        case DataType::q5_0:
          put16(at, float_to_half(d));
          break;
        case DataType::q4_k:
        case DataType::q5_k:
          put16(at, float_to_half(d / 32.0F));
          put16(at + 2, float_to_half(d / 4.0F));
          break;
        case DataType::q6_k:
          put16(at + 208, float_to_half(d / 64.0F));
          break;
      }
    }
    pack_panels(type, rows, cols, file.data(), panels.data());
    matrix = {packed_type(type), rows, cols, panels.data()};
  }
  static void put16(std::byte* at, std::uint16_t v) { std::memcpy(at, &v, 2); }

  Memory file, panels;
  Matrix matrix;
};

struct Input {
  Input(std::int64_t rows, std::int64_t cols)
      : memory(activation_bytes(rows, cols)), view{memory.data(), rows, cols} {}
  Memory memory;
  Activation view;
};

/// The bodies this CPU can run: reference first, then each instruction set.
inline std::vector<const KernelTable*> all_kernels() {
  std::vector<const KernelTable*> out{&reference_kernels()};
  for (const char* isa : {"sse4", "avx2", "avx3", "avx3_dl"}) {
    const KernelTable* table = host_kernels(isa).value();
    if (table->isa == isa) out.push_back(table);
  }
  return out;
}

/// The whole op in `threads` threads' worth of chunks, one after the other.
inline void run(const KernelTable& kernels, const Op& op, int threads = 3) {
  std::vector<Phase> phases;
  append_phases(op, kernels, threads, phases);
  for (const Phase& phase : phases) {
    for (int chunk = 0; chunk < phase.chunks; ++chunk) phase.run(chunk);
  }
}

/// Largest difference over the largest magnitude, or over `scale` where that is larger.
inline double relative_error(const std::vector<float>& got, const std::vector<float>& want,
                             double scale = 1e-30) {
  double worst = 0.0;
  for (std::size_t i = 0; i < want.size(); ++i) {
    const double difference = std::abs(double{got[i]} - double{want[i]});
    if (!(difference <= worst)) worst = difference;  // keeps a NaN
    scale = std::max(scale, std::abs(double{want[i]}));
  }
  return worst / scale;
}

/// What a product of row 0 of w and of x would be if their terms had random signs.
inline double typical_product(const Matrix& w, const std::vector<float>& x) {
  std::vector<float> weights(static_cast<std::size_t>(w.cols));
  unpack_row(w, 0, weights.data());
  double squares = 0.0;
  for (std::size_t c = 0; c < weights.size(); ++c)
    squares += std::pow(double{weights[c]} * double{x[c]}, 2.0);
  return std::sqrt(squares);
}

inline bool same_bits(const float* a, const float* b, std::int64_t count) {
  return std::memcmp(a, b, static_cast<std::size_t>(count) * sizeof(float)) == 0;
}

}  // namespace helios::gpu::test
