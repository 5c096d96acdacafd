#pragma once
// GGUF v2 and v3: metadata and where each tensor lies. Reads the header only; weights are read by layer
// later. Source of the format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "gpu/data_type.hpp"
#include "model/byte_source.hpp"
#include "runtime/result.hpp"

namespace helios::model {

/// One tensor: row-major, dims in the file's order (dims[0] is the contiguous one).
struct GgufTensor {
  std::string name;
  gpu::DataType type = gpu::DataType::f32;
  std::array<std::int64_t, 4> dims{1, 1, 1, 1};
  int dim_count = 1;
  std::uint64_t file_offset = 0;  // from the start of the file
  std::uint64_t bytes = 0;

  std::int64_t cols() const noexcept { return dims[0]; }
  std::int64_t rows() const noexcept { return dims[1] * dims[2] * dims[3]; }
};

/// GGUF's number of an element type.
std::uint32_t gguf_number(gpu::DataType type) noexcept;

/// A metadata value. Integers and booleans of any width are held as int64, floats as double.
struct GgufValue {
  using Integers = std::vector<std::int64_t>;
  using Floats = std::vector<double>;
  using Strings = std::vector<std::string>;
  std::variant<std::int64_t, double, bool, std::string, Integers, Floats, Strings> data;

  /// "integer", "float", "boolean", "string", "array of integers", …
  std::string_view kind() const noexcept;
};

/// Limits checked before anything is allocated.
struct GgufLimits {
  std::uint64_t keys = 1 << 16;
  std::uint64_t tensors = 1 << 16;
  std::uint64_t key_bytes = 1 << 16;
  std::uint64_t string_bytes = 1 << 20;
  std::uint64_t name_bytes = 256;
  std::uint64_t array_elements = 1 << 22;  // of all arrays together
  std::uint64_t header_bytes = 256 << 20;
  std::uint64_t alignment = 1 << 20;
};

/// A parsed header; immutable, so any thread may use it.
/// Every tensor is inside the file, aligned, of a known type, and overlaps no other.
class GgufFile {
 public:
  /// Errors: io_error (cannot open or read), bad_file (not GGUF, or not what its format says; names the key
  /// or tensor), unsupported (a version, byte order or tensor type that this program does not read).
  static Result<std::shared_ptr<const GgufFile>> open(const std::string& path);
  /// The same on any source; `label` stands for the path in messages.
  static Result<std::shared_ptr<const GgufFile>> parse(std::shared_ptr<const ByteSource> source,
                                                       std::string label, const GgufLimits& limits = {});

  const std::string& path() const noexcept { return path_; }
  std::uint32_t version() const noexcept { return version_; }
  std::uint64_t file_bytes() const noexcept { return source_->size(); }
  /// Offset of the first byte after the header, aligned: tensors begin here.
  std::uint64_t data_offset() const noexcept { return data_offset_; }

  bool has(std::string_view key) const { return metadata_.find(key) != metadata_.end(); }
  const std::map<std::string, GgufValue, std::less<>>& metadata() const noexcept { return metadata_; }

  /// Typed getters. Errors: bad_file naming the key when it is absent, of another kind, or out of range.
  Result<std::uint32_t> u32(std::string_view key) const;
  Result<std::int64_t> i64(std::string_view key) const;
  Result<float> f32(std::string_view key) const;
  Result<bool> boolean(std::string_view key) const;
  Result<std::string> str(std::string_view key) const;
  /// As above, but an absent key gives `fallback`; a key of another kind is still an error.
  Result<std::uint32_t> u32_or(std::string_view key, std::uint32_t fallback) const;
  Result<float> f32_or(std::string_view key, float fallback) const;
  Result<bool> boolean_or(std::string_view key, bool fallback) const;
  Result<std::string> str_or(std::string_view key, std::string fallback) const;
  /// Arrays, borrowed from this object.
  Result<std::span<const std::string>> strings(std::string_view key) const;
  Result<std::span<const std::int64_t>> integers(std::string_view key) const;
  Result<std::span<const double>> floats(std::string_view key) const;

  std::span<const GgufTensor> tensors() const noexcept { return tensors_; }
  /// nullptr when there is no such tensor.
  const GgufTensor* find(std::string_view name) const;
  /// As find, with an error that names the tensor. Errors: bad_file.
  Result<const GgufTensor*> require(std::string_view name) const;
  /// Reads a whole tensor in the file's layout; out.size() must be tensor.bytes.
  Result<void> read(const GgufTensor& tensor, std::span<std::byte> out) const;

 private:
  friend class GgufParser;
  GgufFile() = default;
  Result<const GgufValue*> value(std::string_view key) const;

  std::string path_;
  std::shared_ptr<const ByteSource> source_;
  std::uint32_t version_ = 0;
  std::uint64_t data_offset_ = 0;
  std::map<std::string, GgufValue, std::less<>> metadata_;
  std::vector<GgufTensor> tensors_;
  std::map<std::string, std::size_t, std::less<>> tensor_index_;
};

}  // namespace helios::model
