#include <array>

#include "gpu/kernels/sample.hpp"

namespace helios::gpu {

namespace {

// Philox4x32-10 of Random123; test/gpu checks its published vectors.
std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> c, std::uint32_t k0,
                                        std::uint32_t k1) noexcept {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = std::uint64_t{0xD2511F53U} * c[0], b = std::uint64_t{0xCD9E8D57U} * c[2];
    c = {static_cast<std::uint32_t>(b >> 32) ^ c[1] ^ k0, static_cast<std::uint32_t>(b),
         static_cast<std::uint32_t>(a >> 32) ^ c[3] ^ k1, static_cast<std::uint32_t>(a)};
    k0 += 0x9E3779B9U;
    k1 += 0xBB67AE85U;
  }
  return c;
}

}  // namespace

float philox_uniform(std::uint64_t seed, std::uint64_t counter) noexcept {
  const auto words =
      philox4x32({static_cast<std::uint32_t>(counter), static_cast<std::uint32_t>(counter >> 32), 0, 0},
                 static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32));
  return static_cast<float>(words[0] >> 8) * 0x1p-24F;
}

}  // namespace helios::gpu
