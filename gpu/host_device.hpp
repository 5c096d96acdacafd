#pragma once
#include <memory>
#include <string>

#include "gpu/device.hpp"

namespace helios::runtime {
class Tracer;
}

namespace helios::gpu {

enum class Kernels : unsigned char { fast, reference };

struct HostOptions {
  std::size_t arena_bytes = 0;
  int threads = 1;  // of a compute stream
  Kernels kernels = Kernels::fast;
  std::string isa_limit;              // not above sse4, avx2, avx3 or avx3_dl; empty: the CPU's best
  runtime::Tracer* tracer = nullptr;  // outlives the device; null: off
  int copy_nice = 10;                 // of the copy thread, added to the process's
};

/// The CPU as a device: its memory is an arena of repacked weights, its streams are threads.
class HostDevice final : public Device {
 public:
  /// Errors: bad_request (no threads, an unknown isa_limit), out_of_memory.
  static Result<std::unique_ptr<HostDevice>> create(HostOptions options);
  ~HostDevice() override;

  std::string_view name() const override;
  std::string_view isa() const override;
  DeviceBudget& budget() override;
  CopyEngine& copy_engine() override;
  Result<std::unique_ptr<Stream>> create_stream(StreamKind kind) override;

 private:
  struct Parts;
  explicit HostDevice(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace helios::gpu
