#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "runtime/result.hpp"

namespace helios::gpu {

/// Explicit reads of a file that stays open. Thread-safe.
class FileReader {
 public:
  static Result<std::shared_ptr<FileReader>> open(const std::string& path);
  virtual ~FileReader();

  const std::string& path() const noexcept { return path_; }
  std::uint64_t size() const noexcept { return size_; }
  /// Fills `out`. Errors: bad_file (the range is not inside the file), io_error.
  virtual Result<void> read_at(std::uint64_t offset, std::span<std::byte> out) const;
  /// All bytes read so far: what a partial load proves itself by.
  std::uint64_t bytes_read() const noexcept { return bytes_read_.load(std::memory_order_relaxed); }

 protected:
  FileReader(std::string path, int descriptor, std::uint64_t size);

 private:
  std::string path_;
  int descriptor_;
  std::uint64_t size_;
  mutable std::atomic<std::uint64_t> bytes_read_{0};
};

}  // namespace helios::gpu
