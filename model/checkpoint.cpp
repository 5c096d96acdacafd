#include "model/checkpoint.hpp"

#include <fmt/format.h>

#include "gpu/file_blocks.hpp"

namespace helios::model {

namespace {

constexpr std::pair<Quant, std::string_view> kQuants[] = {
    {Quant::none, "none"}, {Quant::q8_0, "q8_0"}, {Quant::q4_1, "q4_1"}, {Quant::q4_k, "q4_k"}};

}  // namespace

std::string_view to_string(Quant quant) noexcept {
  for (const auto& [value, name] : kQuants) {
    if (value == quant) return name;
  }
  return "?";
}

Result<Quant> parse_quant(std::string_view text) {
  for (const auto& [value, name] : kQuants) {
    if (name == text) return value;
  }
  return fail(Errc::bad_request, fmt::format("quant '{}' is not known: none, q8_0, q4_1 and q4_k are", text));
}

Result<std::uint32_t> Checkpoint::add_file(const std::string& path) {
  Result<std::shared_ptr<gpu::FileReader>> reader = gpu::FileReader::open(path);
  if (!reader) return reader.error();
  readers_.push_back(std::move(*reader));
  return static_cast<std::uint32_t>(readers_.size() - 1);
}

Result<void> Checkpoint::add(StoredTensor tensor) {
  if (!index_.emplace(tensor.name, tensors_.size()).second) {
    return fail(Errc::bad_file,
                fmt::format("{}: tensor '{}' is there twice", path_, shown_name(tensor.name)));
  }
  tensor.held = tensor.type;
  tensors_.push_back(std::move(tensor));
  return {};
}

void Checkpoint::quantise(Quant to) {
  for (StoredTensor& tensor : tensors_) {
    const bool table = tensor.name == "token_embd.weight" || tensor.name == "output.weight";
    if (to == Quant::none || tensor.rows() == 1 || gpu::is_quantised(tensor.type)) continue;
    if (tensor.cols() % gpu::block_elements(gpu::DataType::q8_0) != 0) continue;
    if (tensor.name == "position_embd.weight") continue;  // added to rows as it is, not multiplied
    const bool super_blocks = tensor.cols() % gpu::block_elements(gpu::DataType::q4_k) == 0;
    tensor.held = to == Quant::q8_0 || table          ? gpu::DataType::q8_0
                  : to == Quant::q4_k && super_blocks ? gpu::DataType::q4_k
                                                      : gpu::DataType::q4_1;
  }
}

const StoredTensor* Checkpoint::find(std::string_view name) const {
  const auto found = index_.find(name);
  return found == index_.end() ? nullptr : &tensors_[found->second];
}

Result<const StoredTensor*> Checkpoint::require(std::string_view name) const {
  if (const StoredTensor* tensor = find(name)) return tensor;
  return fail(Errc::bad_file, fmt::format("{}: tensor '{}' is missing: the file is not a complete model of "
                                          "its architecture, convert it again",
                                          path_, shown_name(name)));
}

std::uint64_t Checkpoint::bytes_read() const noexcept {
  std::uint64_t bytes = 0;
  for (const auto& reader : readers_) bytes += reader->bytes_read();
  return bytes;
}

Result<void> Checkpoint::read(const StoredTensor& tensor, std::span<std::byte> out) const {
  if (out.size() != tensor.bytes) {
    return fail(Errc::internal,
                fmt::format("tensor '{}' is {} bytes, not {}", tensor.name, tensor.bytes, out.size()));
  }
  return reader(tensor)->read_at(tensor.file_offset, out);
}

Result<std::vector<float>> Checkpoint::read_floats(const StoredTensor& tensor) const {
  std::vector<std::byte> bytes(tensor.bytes);
  if (Result<void> done = read(tensor, bytes); !done) return done.error();
  std::vector<float> values(static_cast<std::size_t>(tensor.rows() * tensor.cols()));
  const std::size_t row_bytes = gpu::row_bytes(tensor.type, tensor.cols());
  for (std::int64_t row = 0; row < tensor.rows(); ++row) {
    gpu::dequantise_row(tensor.type, bytes.data() + static_cast<std::size_t>(row) * row_bytes, tensor.cols(),
                        values.data() + row * tensor.cols());
  }
  return values;
}

}  // namespace helios::model
