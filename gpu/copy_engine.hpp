#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "gpu/data_type.hpp"
#include "gpu/event.hpp"
#include "gpu/file_reader.hpp"
#include "runtime/cancellation.hpp"
#include "runtime/result.hpp"

namespace helios::gpu {

inline constexpr std::size_t kCopyPieceBytes = std::size_t{1} << 20;

/// One tensor: file bytes -> device memory.
struct LoadPiece {
  std::uint64_t file_offset = 0;
  std::uint64_t file_bytes = 0;  // row_bytes(type, cols) * rows
  DataType type = DataType::f32;
  std::int64_t rows = 0, cols = 0;
  std::byte* destination = nullptr;  // Device::packed_bytes(held type, rows, cols); raw: rows * cols floats
  bool raw = false;                  // a vector (norm weights, biases): widened to f32, row-major
  std::optional<DataType> quantise_to;  // q8_0, q4_1 or q4_k, from f32, f16 or bf16: the type held on the device
  std::shared_ptr<FileReader> file;     // null: the request's

  DataType held() const noexcept { return quantise_to.value_or(type); }
};

struct LoadRequest {
  std::shared_ptr<FileReader> file;  // of pieces that name none
  std::vector<LoadPiece> pieces;
  runtime::CancelToken cancel;
  /// Called on the copy stream after each piece with the file bytes done so far; may be empty.
  std::function<void(std::size_t bytes_done)> progress;
  std::string label = "load";  // for the trace
};

/// A copy in flight. Destroying it does not stop it; the request's token does.
class Copy {
 public:
  Copy(Event event, std::size_t bytes) : event_(std::move(event)), bytes_(bytes) {}
  /// Errors: cancelled, bad_file (truncated), io_error. After an error destinations hold anything; after the
  /// event nothing writes to them any more.
  const Event& event() const noexcept { return event_; }
  std::size_t bytes() const noexcept { return bytes_; }  // file bytes of the whole request

 private:
  Event event_;
  std::size_t bytes_;
};

/// Reads files and repacks weights beside the compute stream, in the order of start(): pieces of at most 1
/// MiB (whole panels of 16 rows; more only when one panel is larger), at low priority, cancellable between
/// pieces.
class CopyEngine {
 public:
  static constexpr std::size_t kMaxQueued = 64;  // requests

  virtual ~CopyEngine() = default;
  /// Errors: bad_request (a piece whose numbers do not agree, no destination), busy (kMaxQueued).
  virtual Result<Copy> start(LoadRequest request) = 0;
};

/// Checks a request's numbers: shared by all engines.
Result<void> validate(const LoadRequest& request);

}  // namespace helios::gpu
