#include "gpu/command_list.hpp"

#include <cmath>

namespace helios::gpu {

namespace {

Result<void> refuse(const char* op, const char* why) {
  return fail(Errc::bad_request, std::string(op) + ": " + why);
}

Result<void> check_matrix(const char* op, const Matrix& w, std::int64_t cols) {
  if (w.rows < 1 || w.cols < 1 || w.type != packed_type(w.type))
    return refuse(op, "the matrix is empty or not packed");
  if (w.cols != cols) return refuse(op, "the matrix's columns differ from the input's");
  if (w.cols % block_elements(w.type) != 0) return refuse(op, "columns are not whole blocks");
  return {};
}

Result<void> check_pack(const char* op, const Activation& out, std::int64_t rows, std::int64_t cols) {
  if (out.cols != cols || cols < 1) return refuse(op, "the output's columns differ from the input's");
  if (rows > out.capacity) return refuse(op, "more rows than the output holds");
  return {};
}

Result<void> check_kv(const char* op, const KvLayerView& kv, std::int32_t heads) {
  if (kv.type != DataType::f16 && kv.type != DataType::f32)
    return refuse(op, "the cache is neither F16 nor F32");
  if (kv.block_tokens < 1 || kv.kv_heads < 1 || kv.head_dim < 1) return refuse(op, "the cache has no shape");
  if (heads % kv.kv_heads != 0) return refuse(op, "heads are not a multiple of the cache's");
  if (kv.block_bytes < kv_block_bytes(kv.type, kv.block_tokens, kv.kv_heads, kv.head_dim)) {
    return refuse(op, "block_bytes is smaller than a block");
  }
  return {};
}

struct Check {
  Result<void> operator()(const Embed& op) const { return check_matrix("Embed", op.table, op.table.cols); }
  Result<void> operator()(const NormPack& op) const {
    if (op.bias != nullptr && (op.kind != NormPack::Kind::layer || op.weight == nullptr)) {
      return refuse("NormPack", "only a layer norm has a bias");
    }
    return check_pack("NormPack", op.out, op.rows, op.cols);
  }
  Result<void> operator()(const SiluMulPack& op) const {
    return check_pack("SiluMulPack", op.out, op.rows, op.cols);
  }
  Result<void> operator()(const MatMul& op) const {
    if (op.rows > op.in.capacity) return refuse("MatMul", "more rows than the input holds");
    if (op.count < 1 || op.count > 3) return refuse("MatMul", "needs one to three projections");
    for (std::int32_t k = 0; k < op.count; ++k) {
      const Projection& p = op.projections[static_cast<std::size_t>(k)];
      if (Result<void> ok = check_matrix("MatMul", p.w, op.in.cols); !ok) return ok;
      if (p.out_stride < p.w.rows) return refuse("MatMul", "out_stride is smaller than the matrix's rows");
    }
    return {};
  }
  Result<void> operator()(const RopeKvWrite& op) const {
    if (op.rope.dims < 0 || op.rope.dims % 2 != 0 || op.rope.dims > op.kv.head_dim) {
      return refuse("RopeKvWrite", "rope dims are odd or exceed the head");
    }
    return check_kv("RopeKvWrite", op.kv, op.q != nullptr ? op.heads : op.kv.kv_heads);
  }
  Result<void> operator()(const Attention& op) const {
    if (op.heads < 1) return refuse("Attention", "no heads");
    return check_kv("Attention", op.kv, op.heads);
  }
  Result<void> operator()(const RowStore& op) const {
    const RowPagesView& pages = op.pages;
    if (pages.type != DataType::f16 && pages.type != DataType::f32) {
      return refuse("RowStore", "pages are neither F16 nor F32");
    }
    if (pages.block_tokens < 1 || pages.cols < 1) return refuse("RowStore", "pages have no shape");
    return {};
  }
  Result<void> operator()(const Head& op) const {
    if (op.rows > op.in.capacity) return refuse("Head", "more rows than the input holds");
    return check_matrix("Head", op.w, op.in.cols);
  }
  Result<void> operator()(const Sample& op) const {
    if (op.vocab < 1) return refuse("Sample", "no vocabulary");
    return {};
  }
  Result<void> operator()(const AddRows& op) const {
    return op.cols < 1 ? refuse("AddRows", "no columns") : Result<void>();
  }
  Result<void> operator()(const CopyRows& op) const {
    return op.cols < 1 ? refuse("CopyRows", "no columns") : Result<void>();
  }
  Result<void> operator()(const ReluPack& op) const {
    return check_pack("ReluPack", op.out, op.rows, op.cols);
  }
  Result<void> operator()(const AddPositions& op) const {
    if (op.cols < 1 || op.table_rows < 1) return refuse("AddPositions", "the table is empty");
    return {};
  }
};

}  // namespace

Result<void> validate(const Op& op) {
  const auto rows = std::visit([](const auto& body) { return body.rows; }, op);
  if (rows < 0) return fail(Errc::bad_request, "an op has a negative number of rows");
  return std::visit(Check{}, op);
}

}  // namespace helios::gpu
