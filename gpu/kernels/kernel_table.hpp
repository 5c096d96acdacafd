#pragma once
#include <string_view>

#include "gpu/command_list.hpp"
#include "runtime/result.hpp"

namespace helios::gpu {

enum class Isa : unsigned char { sse4, avx2, avx3, avx3_dl };

/// One body per op: does part `chunk` of `chunks` of the op's work. Parts write disjoint memory.
template <class T>
using Kernel = void (*)(const T& op, std::int64_t chunk, std::int64_t chunks);

struct KernelTable {
  std::string_view isa;
  Kernel<Embed> embed;
  Kernel<NormPack> norm_pack;
  Kernel<MatMul> mat_mul;
  Kernel<SiluMulPack> silu_mul_pack;
  Kernel<RopeKvWrite> rope_kv_write;
  Kernel<Attention> attention;
  Kernel<RowStore> row_store;
  Kernel<Head> head_stats;  // the second half of Head; the first is mat_mul
  Kernel<Sample> sample;
  Kernel<AddRows> add_rows;
  Kernel<CopyRows> copy_rows;
  Kernel<ReluPack> relu_pack;
  Kernel<AddPositions> add_positions;
};

const KernelTable& reference_kernels();

/// The fast bodies for the best instruction set of this CPU, not above `limit` (sse4, avx2, avx3, avx3_dl)
/// when given. Errors: bad_request (an unknown name).
Result<const KernelTable*> host_kernels(std::string_view limit);

/// A part of a program that all threads work on; phases of one program run one after the other.
struct Phase {
  const KernelTable* kernels = nullptr;
  const Op* op = nullptr;
  int chunks = 1;
  int stage = 0;       // Head has two
  bool brief = false;  // next phases follow soon: waiting threads spin before they sleep

  void run(int chunk) const;
};

/// The phases of one op for `threads` threads, in order. The op must outlive them.
void append_phases(const Op& op, const KernelTable& kernels, int threads, std::vector<Phase>& out);

}  // namespace helios::gpu
