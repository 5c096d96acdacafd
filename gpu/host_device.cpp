#include "gpu/host_device.hpp"

#include "gpu/host_copy_engine.hpp"
#include "gpu/host_stream.hpp"

namespace helios::gpu {

struct HostDevice::Parts {
  HostOptions options;
  const KernelTable* kernels = nullptr;
  std::unique_ptr<DeviceBudget> budget;
  std::shared_ptr<SharedPool> pool;
  std::unique_ptr<HostCopyEngine> copies;  // last: its thread writes into the arena
};

Result<std::unique_ptr<HostDevice>> HostDevice::create(HostOptions options) {
  if (options.threads < 1 || options.threads > WorkerPool::kMaxThreads) {
    return fail(Errc::bad_request, "threads must be 1 to " + std::to_string(WorkerPool::kMaxThreads) +
                                       ", not " + std::to_string(options.threads));
  }
  auto parts = std::make_unique<Parts>();
  if (options.kernels == Kernels::reference) {
    parts->kernels = &reference_kernels();
  } else {
    Result<const KernelTable*> kernels = host_kernels(options.isa_limit);
    if (!kernels) return kernels.error();
    parts->kernels = *kernels;
  }
  Result<std::unique_ptr<DeviceBudget>> budget = DeviceBudget::create(options.arena_bytes);
  if (!budget) return budget.error();
  parts->budget = std::move(*budget);
  parts->pool = std::make_shared<SharedPool>(options.threads);
  parts->copies = std::make_unique<HostCopyEngine>(options.tracer, options.copy_nice);
  parts->options = std::move(options);
  return std::unique_ptr<HostDevice>(new HostDevice(std::move(parts)));
}

HostDevice::HostDevice(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
HostDevice::~HostDevice() = default;

std::string_view HostDevice::name() const {
  return "host";
}
std::string_view HostDevice::isa() const {
  return parts_->kernels->isa;
}
DeviceBudget& HostDevice::budget() {
  return *parts_->budget;
}
CopyEngine& HostDevice::copy_engine() {
  return *parts_->copies;
}

Result<std::unique_ptr<Stream>> HostDevice::create_stream(StreamKind kind) {
  return std::unique_ptr<Stream>(new HostStream({.kind = kind,
                                                 .kernels = parts_->kernels,
                                                 .pool = parts_->pool,
                                                 .tracer = parts_->options.tracer,
                                                 .nice = parts_->options.copy_nice}));
}

}  // namespace helios::gpu
