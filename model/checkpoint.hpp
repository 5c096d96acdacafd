#pragma once
// The tensors of a model and where their bytes are, whatever format it came in and however many files it has.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/data_type.hpp"
#include "gpu/file_reader.hpp"
#include "runtime/result.hpp"

namespace helios::model {

/// One tensor, row-major. Names are GGUF's in every format: "blk.3.attn_q.weight".
struct StoredTensor {
  std::string name;
  gpu::DataType type = gpu::DataType::f32;  // in the file
  gpu::DataType held = gpu::DataType::f32;  // of a matrix on a device: another than `type` is made on load
  std::int64_t row_count = 1, col_count = 0;
  std::uint32_t file = 0;         // index for Checkpoint::reader()
  std::uint64_t file_offset = 0;  // from the start of the file
  std::uint64_t bytes = 0;        // in the file

  std::int64_t rows() const noexcept { return row_count; }
  std::int64_t cols() const noexcept { return col_count; }
};

/// What a model's matrices are held as: `none` keeps the file's types.
enum class Quant : std::uint8_t { none, q8_0, q4_1, q4_k };
std::string_view to_string(Quant quant) noexcept;
/// "none", "q8_0", "q4_1", "q4_k". Errors: bad_request.
Result<Quant> parse_quant(std::string_view text);

/// Filled by a format's loader, immutable after; then any thread may use it.
class Checkpoint {
 public:
  /// `path` as the user named it, for messages.
  explicit Checkpoint(std::string path) : path_(std::move(path)) {}

  /// Opens one more file; its index is the number of those before. Errors: io_error.
  Result<std::uint32_t> add_file(const std::string& path);
  /// Errors: bad_file (a name that is there already).
  Result<void> add(StoredTensor tensor);
  /// Sets what float matrices are held as: q8_0; or q4_1 or q4_k with embedding and head in q8_0 (q4_k:
  /// q4_1 where columns are not whole blocks of 256). A matrix whose
  /// columns are not whole blocks stays as it is, and so do quantised ones, vectors and position tables.
  void quantise(Quant to);

  /// How the format calls a tensor, for messages; GGUF's name when it is not set.
  void name_by(std::function<std::string(std::string_view)> naming) { naming_ = std::move(naming); }
  std::string shown_name(std::string_view name) const { return naming_ ? naming_(name) : std::string(name); }

  const std::string& path() const noexcept { return path_; }
  std::span<const StoredTensor> tensors() const noexcept { return tensors_; }
  /// nullptr when there is no such tensor.
  const StoredTensor* find(std::string_view name) const;
  /// As find, with an error that names the tensor. Errors: bad_file.
  Result<const StoredTensor*> require(std::string_view name) const;

  /// All reads of weights go through the readers, and they count them.
  const std::shared_ptr<gpu::FileReader>& reader(const StoredTensor& tensor) const {
    return readers_[tensor.file];
  }
  /// Of all files, so far.
  std::uint64_t bytes_read() const noexcept;
  /// Reads a whole tensor in the file's layout; out.size() must be tensor.bytes. Errors: bad_file, io_error.
  Result<void> read(const StoredTensor& tensor, std::span<std::byte> out) const;
  /// The same as floats, row-major, of any type.
  Result<std::vector<float>> read_floats(const StoredTensor& tensor) const;

 private:
  std::string path_;
  std::function<std::string(std::string_view)> naming_;
  std::vector<std::shared_ptr<gpu::FileReader>> readers_;
  std::vector<StoredTensor> tensors_;
  std::map<std::string, std::size_t, std::less<>> index_;
};

}  // namespace helios::model
