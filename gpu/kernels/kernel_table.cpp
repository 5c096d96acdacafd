#include "gpu/kernels/kernel_table.hpp"

#include <hwy/targets.h>

#include <array>

#include "gpu/kernels/targets.hpp"

namespace helios::gpu {

namespace {

constexpr std::array<std::string_view, 4> kNames{"sse4", "avx2", "avx3", "avx3_dl"};

bool available(Isa isa) {
  const std::int64_t targets = hwy::SupportedTargets();
  switch (isa) {
    case Isa::sse4:
      return true;  // the build's floor
    case Isa::avx2:
      return (targets & HWY_AVX2) != 0;
    case Isa::avx3:
      return (targets & HWY_AVX3) != 0;
    case Isa::avx3_dl:
      return (targets & HWY_AVX3) != 0 && __builtin_cpu_supports("avx512vnni") != 0;
  }
  return false;
}

KernelTable make_table(Isa isa) {
  return {
      .isa = kNames[static_cast<std::size_t>(isa)],
      .embed = embed_reference,  // a row a token: bound by reading it
      .norm_pack = norm_pack_kernel(isa),
      .mat_mul = mat_mul_kernel(isa),
      .silu_mul_pack = silu_mul_pack_kernel(isa),
      .rope_kv_write = rope_kv_write_kernel(isa),
      .attention = attention_kernel(isa),
      .row_store = row_store_kernel(isa),
      .head_stats = head_stats_kernel(isa),
      .sample = sample_kernel(isa),
      .add_rows = add_rows_kernel(isa),
      .copy_rows = copy_rows_reference,  // memcpy by row
      .relu_pack = relu_pack_kernel(isa),
      .add_positions = add_positions_kernel(isa),
  };
}

}  // namespace

Result<const KernelTable*> host_kernels(std::string_view limit) {
  static const std::array<KernelTable, 4> kTables{make_table(Isa::sse4), make_table(Isa::avx2),
                                                  make_table(Isa::avx3), make_table(Isa::avx3_dl)};
  bool below = limit.empty();
  for (std::size_t i = kNames.size(); i-- > 0;) {
    below = below || limit == kNames[i];
    if (below && available(static_cast<Isa>(i))) return &kTables[i];
  }
  return fail(Errc::bad_request,
              "unknown instruction set '" + std::string(limit) + "': sse4, avx2, avx3 or avx3_dl");
}

}  // namespace helios::gpu
