#pragma once
// The device contract: host now, CUDA and emulated CUDA by the same interface.

#include <memory>
#include <string>
#include <string_view>

#include "gpu/activation.hpp"
#include "gpu/copy_engine.hpp"
#include "gpu/device_budget.hpp"
#include "gpu/kv_layout.hpp"
#include "gpu/matrix.hpp"
#include "gpu/stream.hpp"

namespace helios::gpu {

class Device {
 public:
  virtual ~Device() = default;
  virtual std::string_view name() const = 0;
  virtual std::string_view isa() const = 0;  // "avx3_dl", "reference", ...
  virtual DeviceBudget& budget() = 0;
  virtual CopyEngine& copy_engine() = 0;
  virtual Result<std::unique_ptr<Stream>> create_stream(StreamKind kind) = 0;

  /// Bytes of a weight matrix of a file on this device.
  virtual std::size_t packed_bytes(DataType file_type, std::int64_t rows, std::int64_t cols) const {
    return packed_matrix_bytes(file_type, rows, cols);
  }
  virtual Matrix matrix_view(DataType file_type, std::int64_t rows, std::int64_t cols,
                             const std::byte* data) const {
    return {packed_type(file_type), rows, cols, data};
  }
  /// Bytes of an Activation buffer for up to `rows` rows.
  virtual std::size_t activation_bytes(std::int64_t rows, std::int64_t cols) const {
    return gpu::activation_bytes(rows, cols);
  }
  /// Whether the host may read and write device pointers of an idle stream directly (ids, meta, results).
  virtual bool host_visible() const { return true; }
};

}  // namespace helios::gpu
