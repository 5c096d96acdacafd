// Any bytes as a safetensors file: refused, or the tensors are the data, end to end, and can be read.

#include <string>
#include <vector>

#include "model/safetensors.hpp"
#include "test/fuzz/fuzz_support.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace helios;
  using fuzz::require;
  const auto bytes = std::as_bytes(std::span(data, size));
  const auto file = model::Safetensors::parse(std::make_shared<fuzz::InputSource>(bytes), "input");
  if (!file) {
    require(file.error().message.starts_with("input: "));
    return 0;
  }
  std::uint64_t header = 0;
  require(size >= sizeof(header));
  std::memcpy(&header, data, sizeof(header));
  std::uint64_t at = sizeof(header) + header;
  for (const model::SafetensorsTensor& tensor : (*file)->tensors()) {
    require(tensor.file_offset == at);
    std::uint64_t elements = 1;
    for (const std::int64_t extent : tensor.shape) elements *= static_cast<std::uint64_t>(extent);
    require(tensor.bytes == elements * model::element_bytes(tensor.type));
    require((*file)->find(tensor.name) == &tensor);
    at += tensor.bytes;
    require(at <= size);
    std::vector<std::byte> read(static_cast<std::size_t>(tensor.bytes));
    require((*file)->read(tensor, read).has_value());
  }
  require(at == size);
  return 0;
}
