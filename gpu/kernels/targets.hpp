#pragma once
// The choice among the bodies that Highway compiled.

#include "gpu/kernels/kernel_table.hpp"

/// `function` of namespace helios::gpu::N_xxx for an instruction set; avx3_dl is avx3 with another MatMul.
#define HELIOS_FOR_ISA(isa, function) \
  ((isa) == Isa::sse4 ? N_SSE4::function : (isa) == Isa::avx2 ? N_AVX2::function : N_AVX3::function)

namespace helios::gpu {

Kernel<AddPositions> add_positions_kernel(Isa isa);
Kernel<AddRows> add_rows_kernel(Isa isa);
Kernel<Attention> attention_kernel(Isa isa);
Kernel<Head> head_stats_kernel(Isa isa);
Kernel<MatMul> mat_mul_kernel(Isa isa);
Kernel<NormPack> norm_pack_kernel(Isa isa);
Kernel<ReluPack> relu_pack_kernel(Isa isa);
Kernel<RopeKvWrite> rope_kv_write_kernel(Isa isa);
Kernel<RowStore> row_store_kernel(Isa isa);
Kernel<Sample> sample_kernel(Isa isa);
Kernel<SiluMulPack> silu_mul_pack_kernel(Isa isa);

}  // namespace helios::gpu
