#pragma once
#include "gpu/kernels/rope_kv_write.hpp"

namespace helios::gpu {

/// cos, sin of each pair's angle at a position, [dims] floats, from doubles. Kept per thread for the
/// positions used last: all layers of a step ask for the same ones. Valid until the thread's next call.
const float* rope_turns(const Rope& rope, std::int32_t position);

}  // namespace helios::gpu
