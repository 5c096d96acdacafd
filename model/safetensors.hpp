#pragma once
// Safetensors: a JSON header that says where each tensor lies. Reads the header only.
// Source of the format: https://github.com/huggingface/safetensors#format

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/data_type.hpp"
#include "model/byte_source.hpp"
#include "runtime/result.hpp"

namespace helios::model {

enum class SafetensorsType : std::uint8_t { f64, f32, f16, bf16, i64, i32, i16, i8, u8, boolean };

/// "F32", "BF16", …: the file's own spelling.
std::string_view to_string(SafetensorsType type) noexcept;
std::size_t element_bytes(SafetensorsType type) noexcept;
/// The device's type for this one, if it has any (f32, f16, bf16).
std::optional<gpu::DataType> device_type(SafetensorsType type) noexcept;

/// One tensor: row-major, shape in the usual order (the last is the contiguous one).
struct SafetensorsTensor {
  std::string name;
  SafetensorsType type = SafetensorsType::f32;
  std::vector<std::int64_t> shape;  // empty: a scalar
  std::uint64_t file_offset = 0;    // from the start of the file
  std::uint64_t bytes = 0;

  std::int64_t cols() const noexcept { return shape.empty() ? 1 : shape.back(); }
  std::int64_t rows() const noexcept;
};

/// A parsed header; immutable, so any thread may use it. Tensors are inside the file and do not overlap.
class Safetensors {
 public:
  static constexpr std::uint64_t kMaxHeaderBytes = 16 << 20;
  static constexpr std::size_t kMaxTensors = 1 << 16;
  static constexpr std::size_t kMaxDims = 8;

  /// Errors: io_error, bad_file (names the tensor and the rule it breaks), unsupported (an element type).
  static Result<std::shared_ptr<const Safetensors>> open(const std::string& path);
  static Result<std::shared_ptr<const Safetensors>> parse(std::shared_ptr<const ByteSource> source,
                                                          std::string label);

  const std::string& path() const noexcept { return path_; }
  std::uint64_t file_bytes() const noexcept { return source_->size(); }
  /// The `__metadata__` object: strings by name.
  const std::map<std::string, std::string, std::less<>>& metadata() const noexcept { return metadata_; }
  /// One entry of it. Errors: bad_file when absent.
  Result<std::string> metadata_value(std::string_view key) const;

  std::span<const SafetensorsTensor> tensors() const noexcept { return tensors_; }
  const SafetensorsTensor* find(std::string_view name) const;
  Result<const SafetensorsTensor*> require(std::string_view name) const;
  /// Reads a whole tensor; out.size() must be tensor.bytes.
  Result<void> read(const SafetensorsTensor& tensor, std::span<std::byte> out) const;

 private:
  friend class SafetensorsParser;
  Safetensors() = default;

  std::string path_;
  std::shared_ptr<const ByteSource> source_;
  std::map<std::string, std::string, std::less<>> metadata_;
  std::vector<SafetensorsTensor> tensors_;  // in the order of their bytes
  std::map<std::string, std::size_t, std::less<>> index_;
};

}  // namespace helios::model
