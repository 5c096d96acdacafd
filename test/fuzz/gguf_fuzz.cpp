// Any bytes as a GGUF file: refused, or every tensor lies inside of it, apart from the others, and can be
// read; and its tokenizer, if it has one, gives back what it encodes.

#include <algorithm>
#include <string>
#include <vector>

#include "model/gguf.hpp"
#include "model/tokenizer.hpp"
#include "test/fuzz/fuzz_support.hpp"

namespace {

using namespace helios;
using fuzz::require;

constexpr model::GgufLimits kLimits{
    .keys = 64, .tensors = 64, .array_elements = 4096, .header_bytes = 1 << 16};

void check_tensors(const model::GgufFile& file, std::size_t size) {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> places;
  for (const model::GgufTensor& tensor : file.tensors()) {
    require(tensor.bytes > 0);
    require(tensor.file_offset >= file.data_offset());
    require(tensor.file_offset <= size && tensor.bytes <= size - tensor.file_offset);
    require(tensor.bytes ==
            gpu::row_bytes(tensor.type, tensor.cols()) * static_cast<std::uint64_t>(tensor.rows()));
    require(file.find(tensor.name) == &tensor);
    std::vector<std::byte> bytes(static_cast<std::size_t>(tensor.bytes));
    require(file.read(tensor, bytes).has_value());
    places.emplace_back(tensor.file_offset, tensor.bytes);
  }
  std::sort(places.begin(), places.end());
  for (std::size_t i = 1; i < places.size(); ++i)
    require(places[i - 1].first + places[i - 1].second <= places[i].first);
}

void check_metadata(const model::GgufFile& file) {
  for (const auto& [key, value] : file.metadata()) {
    const bool number = file.u32(key).has_value();
    require(!number || file.i64(key).has_value());
    require(!file.str(key).has_value() || value.kind() == "a string");
    require(static_cast<int>(file.f32(key).has_value()) + static_cast<int>(number) +
                static_cast<int>(file.boolean(key).has_value()) +
                static_cast<int>(file.strings(key).has_value()) <=
            1);
  }
}

void check_tokenizer(const model::GgufFile& file) {
  const auto tokenizer = model::Tokenizer::from_gguf(file);
  if (!tokenizer) {
    require(!tokenizer.error().message.empty());
    return;
  }
  const std::string text = "ab a  abab 12 \xC3\xA9<|x|>";
  for (const bool special : {false, true}) {
    for (const std::int32_t id : (*tokenizer)->encode(text, special))
      require(!(*tokenizer)->bytes_of(id).empty());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  const auto file = model::GgufFile::parse(std::make_shared<fuzz::InputSource>(bytes), "input", kLimits);
  if (!file) {
    require(file.error().message.starts_with("input: "));
    return 0;
  }
  check_tensors(**file, size);
  check_metadata(**file);
  check_tokenizer(**file);
  return 0;
}
