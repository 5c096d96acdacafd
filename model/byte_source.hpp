#pragma once
// Bytes of a model file, read in explicit pieces: a file cut short while we run gives an error, not a SIGBUS.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "runtime/result.hpp"

namespace helios::model {

/// Random access to the bytes of one file. Thread-safe: reads carry their own offset.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  /// Size in bytes when it was opened.
  virtual std::uint64_t size() const noexcept = 0;
  /// Fills `out` from `offset`. Errors: bad_file (past the end), io_error.
  virtual Result<void> read_at(std::uint64_t offset, std::span<std::byte> out) const = 0;
};

/// Opens a regular file for reading. Errors: io_error with the system's reason.
Result<std::shared_ptr<const ByteSource>> open_file_source(const std::string& path);

/// A whole file that is to be parsed. Errors: io_error (names the file), and `too_large` when it has more
/// than `most_bytes`.
Result<std::string> read_text(const std::string& path, std::uint64_t most_bytes,
                              Errc too_large = Errc::bad_file);

/// Borrows `bytes`, which must outlive the source (tests, fuzzers).
std::shared_ptr<const ByteSource> memory_source(std::span<const std::byte> bytes);

/// a * b and a + b, or false when they do not fit.
inline bool checked_multiply(std::uint64_t a, std::uint64_t b, std::uint64_t& out) {
  return !__builtin_mul_overflow(a, b, &out);
}
inline bool checked_add(std::uint64_t a, std::uint64_t b, std::uint64_t& out) {
  return !__builtin_add_overflow(a, b, &out);
}

}  // namespace helios::model
