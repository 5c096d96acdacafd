#pragma once
// A device in virtual time: seeded tests see every order of steps and copies, and every fault.

#include <functional>
#include <memory>
#include <string>

#include "gpu/device.hpp"
#include "runtime/executor.hpp"

namespace helios::gpu {

struct VirtualOptions {
  std::size_t arena_bytes = 0;
  /// Virtual time of one program; empty: 1 ms.
  std::function<runtime::Duration(const CommandList&)> cost;
  double copy_bytes_per_second = 1e9;
  bool compute = true;  // false: results are left as they were (timing tests)
  // Scripted faults, 1 = the first; 0 = never.
  int fail_program = 0;  // device_fault in the status of the events after the k-th program
  int fail_copy = 0;     // io_error in the k-th copy
  int fail_reserve = 0;  // out_of_memory from the k-th reserve
};

/// Streams run programs by the reference kernels, on the executor, when their virtual duration is over. Not
/// thread-safe: use it from the simulation's thread.
class VirtualDevice final : public Device {
 public:
  static Result<std::unique_ptr<VirtualDevice>> create(runtime::Executor& executor, VirtualOptions options);
  ~VirtualDevice() override;

  std::string_view name() const override { return "virtual"; }
  std::string_view isa() const override { return "reference"; }
  DeviceBudget& budget() override;
  CopyEngine& copy_engine() override;
  Result<std::unique_ptr<Stream>> create_stream(StreamKind kind) override;

  std::size_t programs_run() const;
  std::size_t copies_run() const;

 private:
  struct Parts;
  explicit VirtualDevice(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace helios::gpu
