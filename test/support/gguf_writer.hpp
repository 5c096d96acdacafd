#pragma once
// Writes small GGUF files, right or wrong on purpose.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace helios::test {

class GgufWriter {
 public:
  // The file's numbers for value types.
  enum Type : std::uint32_t {
    kU8,
    kI8,
    kU16,
    kI16,
    kU32,
    kI32,
    kF32,
    kBool,
    kString,
    kArray,
    kU64,
    kI64,
    kF64
  };

  template <class T>
  static std::string raw(T value) {
    return {reinterpret_cast<const char*>(&value), sizeof(T)};
  }
  static std::string string(std::string_view text) { return raw(std::uint64_t{text.size()}).append(text); }

  GgufWriter& key(std::string_view name, std::uint32_t type, const std::string& value) {
    keys_ += string(name) + raw(type) + value;
    ++key_count;
    return *this;
  }
  GgufWriter& key(std::string_view name, std::string_view value) { return key(name, kString, string(value)); }
  GgufWriter& key(std::string_view name, const std::vector<std::string>& values) {
    std::string out = raw(std::uint32_t{kString}) + raw(std::uint64_t{values.size()});
    for (const std::string& value : values) out += string(value);
    return key(name, kArray, out);
  }
  /// `offset` is from the start of the data.
  GgufWriter& tensor(std::string_view name, const std::vector<std::uint64_t>& dims, std::uint32_t type,
                     std::uint64_t offset) {
    tensors_ += string(name) + raw(static_cast<std::uint32_t>(dims.size()));
    for (const std::uint64_t dim : dims) tensors_ += raw(dim);
    tensors_ += raw(type) + raw(offset);
    ++tensor_count;
    return *this;
  }

  /// The header, padding to `alignment`, and `data_bytes` bytes counting upwards.
  std::string bytes(std::size_t data_bytes = 0, std::size_t alignment = 32) const {
    std::string out = magic + raw(version) + raw(tensor_count) + raw(key_count) + keys_ + tensors_;
    out.append((alignment - out.size() % alignment) % alignment, '\0');
    for (std::size_t i = 0; i < data_bytes; ++i) out += static_cast<char>(i);
    return out;
  }

  std::string magic = "GGUF";
  std::uint32_t version = 3;
  std::uint64_t tensor_count = 0;
  std::uint64_t key_count = 0;

 private:
  std::string keys_;
  std::string tensors_;
};

}  // namespace helios::test
