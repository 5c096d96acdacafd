#pragma once
#include <variant>
#include <vector>

#include "gpu/kernels/add_positions.hpp"
#include "gpu/kernels/add_rows.hpp"
#include "gpu/kernels/attention.hpp"
#include "gpu/kernels/copy_rows.hpp"
#include "gpu/kernels/embed.hpp"
#include "gpu/kernels/head.hpp"
#include "gpu/kernels/mat_mul.hpp"
#include "gpu/kernels/norm_pack.hpp"
#include "gpu/kernels/relu_pack.hpp"
#include "gpu/kernels/rope_kv_write.hpp"
#include "gpu/kernels/row_store.hpp"
#include "gpu/kernels/sample.hpp"
#include "gpu/kernels/silu_mul_pack.hpp"
#include "runtime/result.hpp"

namespace helios::gpu {

using Op = std::variant<Embed, NormPack, MatMul, SiluMulPack, RopeKvWrite, Attention, RowStore, Head, Sample,
                        AddRows, CopyRows, ReluPack, AddPositions>;

/// One program: ops in order, each sees the results of those before it. Ops are plain structs of device
/// pointers.
using CommandList = std::vector<Op>;

/// Refuses shapes that kernels do not take (bad_request, naming the op); pointers are the caller's word.
Result<void> validate(const Op& op);

/// The whole op by the plain body, on this thread.
void run_reference(const Op& op);

}  // namespace helios::gpu
