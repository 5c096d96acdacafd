#pragma once
// Writes a GGUF v3 file front to back, however large, through one buffer.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/data_type.hpp"
#include "runtime/result.hpp"

namespace helios::model {

/// First keys and tensors are declared, then the file is opened, then the tensors' bytes follow in the order
/// of their declaration. Move-only; not thread-safe.
class GgufWriter {
 public:
  GgufWriter() = default;
  GgufWriter(const GgufWriter&) = delete;
  GgufWriter& operator=(const GgufWriter&) = delete;
  ~GgufWriter();  // removes what was not finished

  void key(std::string_view name, std::uint32_t value);
  void key(std::string_view name, float value);
  void key(std::string_view name, std::string_view value);
  void key(std::string_view name, const std::vector<std::string>& values);
  void key(std::string_view name, const std::vector<std::int32_t>& values);
  /// rows 1: a vector. cols: whole blocks of the type.
  void tensor(std::string_view name, gpu::DataType type, std::int64_t rows, std::int64_t cols);

  /// Of the finished file.
  std::uint64_t file_bytes() const;

  /// Writes the header to `path`.part. Errors: io_error.
  Result<void> open(const std::string& path);
  /// The next bytes of the data, without padding; a call must not cross a tensor's end. Errors: io_error,
  /// bad_request (more bytes than were declared).
  Result<void> append(std::span<const std::byte> bytes);
  /// Renames the file to its name. Errors: io_error, bad_request (bytes are missing).
  Result<void> finish();

 private:
  template <class T>
  void raw(T value);
  void text(std::string_view value);
  void begin_key(std::string_view name, std::uint32_t type);
  std::string header() const;
  Result<void> write_all(std::span<const std::byte> bytes);

  std::string keys_, tensors_;
  std::uint64_t key_count_ = 0;
  std::vector<std::uint64_t> sizes_;  // of the tensors' data
  std::uint64_t data_bytes_ = 0;      // padded
  std::string path_;
  int descriptor_ = -1;
  std::size_t current_ = 0;          // tensor that is being written
  std::uint64_t current_bytes_ = 0;  // of it, so far
};

}  // namespace helios::model
