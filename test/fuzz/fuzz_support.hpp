#pragma once
// What the fuzz targets share. HELIOS_PLANTED_FAULT builds a target's twin with a fault in what it tests: a
// target that does not notice it proves nothing.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>

#include "model/byte_source.hpp"

namespace helios::fuzz {

#ifdef HELIOS_PLANTED_FAULT
inline constexpr bool kPlantedFault = true;
#else
inline constexpr bool kPlantedFault = false;
#endif

inline void require(bool condition) {
  if (!condition) std::abort();
}

/// The input as a file. The planted fault: it says that it is 64 bytes longer than it is (they read as zero),
/// as if a reader had forgotten to compare with the end.
class InputSource final : public model::ByteSource {
 public:
  explicit InputSource(std::span<const std::byte> bytes) : bytes_(bytes) {}
  std::uint64_t size() const noexcept override { return bytes_.size() + (kPlantedFault ? 64 : 0); }
  Result<void> read_at(std::uint64_t offset, std::span<std::byte> out) const override {
    require(offset <= size() && out.size() <= size() - offset);
    for (std::size_t i = 0; i < out.size(); ++i) {
      out[i] = offset + i < bytes_.size() ? bytes_[static_cast<std::size_t>(offset) + i] : std::byte{0};
    }
    return {};
  }

 private:
  std::span<const std::byte> bytes_;
};

}  // namespace helios::fuzz
