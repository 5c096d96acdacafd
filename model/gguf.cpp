#include "model/gguf.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <type_traits>
#include <utility>

namespace helios::model {
namespace {

static_assert(std::endian::native == std::endian::little, "the files are little-endian and read as they are");

constexpr std::uint32_t kMagic = 0x46554747;  // "GGUF"

// The file's numbers for metadata values.
enum class ValueType : std::uint32_t {
  u8,
  i8,
  u16,
  i16,
  u32,
  i32,
  f32,
  boolean,
  string,
  array,
  u64,
  i64,
  f64
};
constexpr std::uint32_t kValueTypes = 13;

// ggml's numbers for element types, for messages and for those we read.
struct ElementType {
  std::uint32_t number;
  const char* name;
  std::optional<gpu::DataType> type;
};
constexpr ElementType kElementTypes[] = {
    {0, "F32", gpu::DataType::f32},
    {1, "F16", gpu::DataType::f16},
    {2, "Q4_0", gpu::DataType::q4_0},
    {3, "Q4_1", gpu::DataType::q4_1},
    {6, "Q5_0", gpu::DataType::q5_0},
    {7, "Q5_1", gpu::DataType::q5_1},
    {8, "Q8_0", gpu::DataType::q8_0},
    {9, "Q8_1", {}},
    {10, "Q2_K", {}},
    {11, "Q3_K", {}},
    {12, "Q4_K", gpu::DataType::q4_k},
    {13, "Q5_K", gpu::DataType::q5_k},
    {14, "Q6_K", gpu::DataType::q6_k},
    {15, "Q8_K", {}},
    {16, "IQ2_XXS", {}},
    {17, "IQ2_XS", {}},
    {18, "IQ3_XXS", {}},
    {19, "IQ1_S", {}},
    {20, "IQ4_NL", {}},
    {21, "IQ3_S", {}},
    {22, "IQ2_S", {}},
    {23, "IQ4_XS", {}},
    {24, "I8", {}},
    {25, "I16", {}},
    {26, "I32", {}},
    {27, "I64", {}},
    {28, "F64", {}},
    {29, "IQ1_M", {}},
    {30, "BF16", gpu::DataType::bf16},
    {34, "TQ1_0", {}},
    {35, "TQ2_0", {}},
    {39, "MXFP4", {}},
};

std::string text(std::uint64_t value) {
  return std::to_string(value);
}

// Names come from the file: only what prints goes into a message.
std::string quoted(std::string_view name) {
  std::string out = "'";
  for (const char c : name.substr(0, 80)) out += (c >= ' ' && c <= '~') ? c : '?';
  if (name.size() > 80) out += "...";
  return out + "'";
}

// Reads forward through a window, so that neither a long header nor a small one costs more than it must.
class HeaderReader {
 public:
  HeaderReader(const ByteSource& source, std::uint64_t limit)
      : source_(source), end_(std::min(source.size(), limit)), limited_(source.size() > limit) {}

  std::uint64_t position() const noexcept { return position_; }
  std::uint64_t remaining() const noexcept { return end_ - position_; }

  Result<void> bytes(std::byte* out, std::uint64_t count) {
    if (count > remaining()) return at_end(count);
    while (count > 0) {
      if (position_ < window_start_ || position_ >= window_start_ + window_.size()) {
        window_.resize(std::min<std::uint64_t>(kWindowBytes, end_ - position_));
        if (auto read = source_.read_at(position_, window_); !read) return read.error();
        window_start_ = position_;
      }
      const std::uint64_t at = position_ - window_start_;
      const std::uint64_t take = std::min<std::uint64_t>(count, window_.size() - at);
      std::memcpy(out, window_.data() + at, take);
      out += take;
      position_ += take;
      count -= take;
    }
    return {};
  }

  template <class T>
  Result<T> number() {
    T value{};
    if (auto read = bytes(reinterpret_cast<std::byte*>(&value), sizeof(T)); !read) return read.error();
    return value;
  }

  Result<std::string> string(std::uint64_t most, const char* what) {
    auto length = number<std::uint64_t>();
    if (!length) return length.error();
    if (*length > most) {
      return fail(Errc::bad_file, std::string(what) + " of " + text(*length) + " bytes (at most " +
                                      text(most) + " are allowed) at byte " + text(position_ - 8) +
                                      ": the file is damaged");
    }
    if (*length > remaining()) return at_end(*length);
    std::string value(static_cast<std::size_t>(*length), '\0');
    if (auto read = bytes(reinterpret_cast<std::byte*>(value.data()), *length); !read) return read.error();
    return value;
  }

 private:
  static constexpr std::uint64_t kWindowBytes = 256 << 10;

  Error at_end(std::uint64_t wanted) const {
    if (limited_) {
      return fail(Errc::bad_file, "the header is longer than " + text(end_) + " bytes: the file is damaged");
    }
    return fail(Errc::bad_file, "the header needs " + text(wanted) + " bytes at byte " + text(position_) +
                                    ", but the file ends at " + text(end_) +
                                    ": it is cut short or damaged, fetch it again");
  }

  const ByteSource& source_;
  std::uint64_t end_;
  bool limited_;
  std::uint64_t position_ = 0;
  std::uint64_t window_start_ = 0;
  std::vector<std::byte> window_;
};

template <class T>
Result<GgufValue> integer_value(HeaderReader& in) {
  auto value = in.number<T>();
  if (!value) return value.error();
  if constexpr (std::is_same_v<T, std::uint64_t>) {
    if (*value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
      return fail(Errc::bad_file, "an integer beyond 2^63: the file is damaged");
    }
  }
  return GgufValue{static_cast<std::int64_t>(*value)};
}

Result<bool> bool_value(HeaderReader& in) {
  auto value = in.number<std::uint8_t>();
  if (!value) return value.error();
  if (*value > 1)
    return fail(Errc::bad_file, "a boolean of value " + text(*value) + " (0 and 1 are allowed)");
  return *value == 1;
}

std::uint64_t least_bytes(ValueType type) {
  switch (type) {
    case ValueType::u8:
    case ValueType::i8:
    case ValueType::boolean:
      return 1;
    case ValueType::u16:
    case ValueType::i16:
      return 2;
    case ValueType::u32:
    case ValueType::i32:
    case ValueType::f32:
      return 4;
    default:
      return 8;
  }
}

}  // namespace

std::string_view GgufValue::kind() const noexcept {
  constexpr std::string_view kKinds[] = {
      "an integer",         "a float", "a boolean", "a string", "an array of integers", "an array of floats",
      "an array of strings"};
  return kKinds[data.index()];
}

class GgufParser {
 public:
  GgufParser(std::shared_ptr<const ByteSource> source, std::string label, const GgufLimits& limits)
      : source_(std::move(source)),
        label_(std::move(label)),
        limits_(limits),
        in_(*source_, limits.header_bytes) {}

  Result<std::shared_ptr<const GgufFile>> run() {
    file_.reset(new GgufFile());
    auto parsed = header();
    if (!parsed) return fail(parsed.error().code, label_ + ": " + parsed.error().message);
    file_->path_ = label_;
    file_->source_ = source_;
    return std::shared_ptr<const GgufFile>(std::move(file_));
  }

 private:
  Result<void> header() {
    auto magic = in_.number<std::uint32_t>();
    if (!magic || *magic != kMagic) {
      return fail(Errc::bad_file, "not a GGUF file (it does not begin with GGUF): name a .gguf model file");
    }
    auto version = in_.number<std::uint32_t>();
    if (!version) return version.error();
    if (*version != 2 && *version != 3) {
      if ((*version & 0xFFFF) == 0 && *version != 0) {
        return fail(Errc::unsupported, "a big-endian GGUF file: convert it to little-endian");
      }
      return fail(Errc::unsupported,
                  "GGUF version " + text(*version) + " (2 and 3 are read): convert the model again");
    }
    file_->version_ = *version;
    auto tensor_count = in_.number<std::uint64_t>();
    if (!tensor_count) return tensor_count.error();
    auto key_count = in_.number<std::uint64_t>();
    if (!key_count) return key_count.error();
    // Each key takes at least 13 bytes and each tensor 24, so a count that the file cannot hold is known now.
    if (*key_count > limits_.keys || *key_count > in_.remaining() / 13)
      return too_many("metadata keys", *key_count);
    if (*tensor_count > limits_.tensors || *tensor_count > in_.remaining() / 24) {
      return too_many("tensors", *tensor_count);
    }
    for (std::uint64_t i = 0; i < *key_count; ++i) {
      if (auto read = key_value(); !read) return read.error();
    }
    auto alignment = read_alignment();
    if (!alignment) return alignment.error();
    file_->tensors_.reserve(static_cast<std::size_t>(*tensor_count));
    for (std::uint64_t i = 0; i < *tensor_count; ++i) {
      if (auto read = tensor(); !read) return read.error();
    }
    return place_tensors(*alignment);
  }

  Error too_many(const char* what, std::uint64_t count) const {
    return fail(Errc::bad_file,
                text(count) + " " + what +
                    ", more than the file can hold or than is allowed: " + "the file is damaged");
  }

  Result<void> key_value() {
    auto key = in_.string(limits_.key_bytes, "a metadata key");
    if (!key) return key.error();
    if (key->empty()) return fail(Errc::bad_file, "a metadata key without a name: the file is damaged");
    if (file_->metadata_.contains(*key)) {
      return fail(Errc::bad_file, "the metadata key " + quoted(*key) + " appears twice: the file is damaged");
    }
    auto type = in_.number<std::uint32_t>();
    if (!type) return type.error();
    auto value = any_value(*type);
    if (!value) {
      return fail(value.error().code, "metadata key " + quoted(*key) + ": " + value.error().message);
    }
    file_->metadata_.emplace(std::move(*key), std::move(*value));
    return {};
  }

  Result<GgufValue> any_value(std::uint32_t type) {
    if (type >= kValueTypes) {
      return fail(Errc::bad_file, "unknown value type " + text(type) + ": the file is damaged");
    }
    return static_cast<ValueType>(type) == ValueType::array ? array_value()
                                                            : scalar(static_cast<ValueType>(type));
  }

  Result<GgufValue> scalar(ValueType type) {
    switch (type) {
      case ValueType::u8:
        return integer_value<std::uint8_t>(in_);
      case ValueType::i8:
        return integer_value<std::int8_t>(in_);
      case ValueType::u16:
        return integer_value<std::uint16_t>(in_);
      case ValueType::i16:
        return integer_value<std::int16_t>(in_);
      case ValueType::u32:
        return integer_value<std::uint32_t>(in_);
      case ValueType::i32:
        return integer_value<std::int32_t>(in_);
      case ValueType::u64:
        return integer_value<std::uint64_t>(in_);
      case ValueType::i64:
        return integer_value<std::int64_t>(in_);
      case ValueType::f32: {
        auto value = in_.number<float>();
        if (!value) return value.error();
        return GgufValue{static_cast<double>(*value)};
      }
      case ValueType::f64: {
        auto value = in_.number<double>();
        if (!value) return value.error();
        return GgufValue{*value};
      }
      case ValueType::boolean: {
        auto value = bool_value(in_);
        if (!value) return value.error();
        return GgufValue{*value};
      }
      case ValueType::string: {
        auto value = in_.string(limits_.string_bytes, "a string");
        if (!value) return value.error();
        return GgufValue{std::move(*value)};
      }
      case ValueType::array:
        break;
    }
    return fail(Errc::internal, "no scalar");
  }

  Result<GgufValue> array_value() {
    auto type = in_.number<std::uint32_t>();
    if (!type) return type.error();
    auto count = in_.number<std::uint64_t>();
    if (!count) return count.error();
    if (*type >= kValueTypes) {
      return fail(Errc::bad_file, "an array of unknown value type " + text(*type) + ": the file is damaged");
    }
    const auto element = static_cast<ValueType>(*type);
    if (element == ValueType::array)
      return fail(Errc::unsupported, "an array of arrays, which no model here needs");
    if (*count > limits_.array_elements - array_elements_ ||
        *count > in_.remaining() / least_bytes(element)) {
      return fail(Errc::bad_file, "an array of " + text(*count) +
                                      " elements, more than the file can hold or than " +
                                      "is allowed: the file is damaged");
    }
    array_elements_ += *count;
    const auto size = static_cast<std::size_t>(*count);
    switch (element) {
      case ValueType::string:
        return collect<GgufValue::Strings, std::string>(element, size);
      case ValueType::f32:
      case ValueType::f64:
        return collect<GgufValue::Floats, double>(element, size);
      case ValueType::boolean:
        return collect<GgufValue::Integers, bool>(element, size);
      default:
        return collect<GgufValue::Integers, std::int64_t>(element, size);
    }
  }

  template <class Array, class Element>
  Result<GgufValue> collect(ValueType element, std::size_t count) {
    Array out;
    out.reserve(count);
    for (std::size_t i = 0; i < count; ++i) {
      auto value = scalar(element);
      if (!value) return value.error();
      out.push_back(std::move(std::get<Element>(value->data)));
    }
    return GgufValue{std::move(out)};
  }

  Result<std::uint64_t> read_alignment() const {
    if (!file_->has("general.alignment")) return std::uint64_t{32};
    auto value = file_->u32("general.alignment");
    if (!value) return value.error();
    if (*value < 8 || *value > limits_.alignment || !std::has_single_bit(*value)) {
      return fail(Errc::bad_file, "general.alignment is " + text(*value) + ": a power of two from 8 to " +
                                      text(limits_.alignment) + " is allowed");
    }
    return std::uint64_t{*value};
  }

  Result<void> tensor() {
    GgufTensor tensor;
    auto name = in_.string(limits_.name_bytes, "a tensor name");
    if (!name) return name.error();
    tensor.name = std::move(*name);
    const std::string who = "tensor " + quoted(tensor.name);
    if (tensor.name.empty()) return fail(Errc::bad_file, "a tensor without a name: the file is damaged");
    if (!file_->tensor_index_.emplace(tensor.name, file_->tensors_.size()).second) {
      return fail(Errc::bad_file, who + " appears twice: the file is damaged");
    }
    auto dim_count = in_.number<std::uint32_t>();
    if (!dim_count) return dim_count.error();
    if (*dim_count < 1 || *dim_count > tensor.dims.size()) {
      return fail(Errc::bad_file, who + " has " + text(*dim_count) + " dimensions (1 to 4 are allowed)");
    }
    tensor.dim_count = static_cast<int>(*dim_count);
    std::uint64_t elements = 1;
    for (std::size_t d = 0; d < *dim_count; ++d) {
      auto extent = in_.number<std::uint64_t>();
      if (!extent) return extent.error();
      // 2^48 elements is beyond any file; below it no later product of a few sizes can overflow 63 bits.
      if (*extent == 0 || !checked_multiply(elements, *extent, elements) ||
          elements > (std::uint64_t{1} << 48)) {
        return fail(Errc::bad_file, who + ": dimension " + text(d) + " is " + text(*extent) +
                                        ", which no tensor in a file can have: the file is damaged");
      }
      tensor.dims[d] = static_cast<std::int64_t>(*extent);
    }
    auto type = in_.number<std::uint32_t>();
    if (!type) return type.error();
    if (auto known = element_type(*type, who); known) {
      tensor.type = *known;
    } else {
      return known.error();
    }
    if (tensor.cols() % static_cast<std::int64_t>(gpu::block_elements(tensor.type)) != 0) {
      return fail(Errc::bad_file, who + ": rows of " + std::to_string(tensor.cols()) +
                                      " elements do not fill blocks of " +
                                      std::to_string(gpu::block_elements(tensor.type)) + " (" +
                                      std::string(gpu::to_string(tensor.type)) + ")");
    }
    const auto row = static_cast<std::uint64_t>(gpu::row_bytes(tensor.type, tensor.cols()));
    if (!checked_multiply(row, static_cast<std::uint64_t>(tensor.rows()), tensor.bytes)) {
      return fail(Errc::bad_file, who + " is too large: the file is damaged");
    }
    auto offset = in_.number<std::uint64_t>();
    if (!offset) return offset.error();
    tensor.file_offset = *offset;  // from the start of the data; moved by place_tensors
    file_->tensors_.push_back(std::move(tensor));
    return {};
  }

  static Result<gpu::DataType> element_type(std::uint32_t number, const std::string& who) {
    for (const ElementType& known : kElementTypes) {
      if (known.number != number) continue;
      if (known.type) return *known.type;
      return fail(Errc::unsupported,
                  who + " is of type " + known.name +
                      ", which is not read: use a file of F32, F16, BF16, Q8_0, Q4_0 or Q4_1");
    }
    return fail(Errc::bad_file,
                who + " is of unknown type " + text(number) + ": the file is damaged or too new");
  }

  Result<void> place_tensors(std::uint64_t alignment) {
    const std::uint64_t size = source_->size();
    const std::uint64_t start = (in_.position() + alignment - 1) / alignment * alignment;
    file_->data_offset_ = start;
    for (GgufTensor& tensor : file_->tensors_) {
      const std::string who = "tensor " + quoted(tensor.name);
      if (tensor.file_offset % alignment != 0) {
        return fail(Errc::bad_file, who + " begins at offset " + text(tensor.file_offset) +
                                        ", not a multiple of the alignment " + text(alignment));
      }
      std::uint64_t end = 0;
      if (!checked_add(tensor.file_offset, start, tensor.file_offset) ||
          !checked_add(tensor.file_offset, tensor.bytes, end) || end > size) {
        return fail(Errc::bad_file, who + " reaches beyond the end of the file (" + text(size) +
                                        " bytes): it is cut short or damaged, fetch it again");
      }
    }
    std::vector<const GgufTensor*> by_offset;
    by_offset.reserve(file_->tensors_.size());
    for (const GgufTensor& tensor : file_->tensors_) by_offset.push_back(&tensor);
    std::sort(by_offset.begin(), by_offset.end(),
              [](const GgufTensor* a, const GgufTensor* b) { return a->file_offset < b->file_offset; });
    for (std::size_t i = 1; i < by_offset.size(); ++i) {
      const GgufTensor& before = *by_offset[i - 1];
      if (before.file_offset + before.bytes > by_offset[i]->file_offset) {
        return fail(Errc::bad_file, "tensors " + quoted(before.name) + " and " + quoted(by_offset[i]->name) +
                                        " overlap: the file is damaged");
      }
    }
    return {};
  }

  std::shared_ptr<const ByteSource> source_;
  std::string label_;
  GgufLimits limits_;
  HeaderReader in_;
  std::uint64_t array_elements_ = 0;
  std::shared_ptr<GgufFile> file_;
};

Result<std::shared_ptr<const GgufFile>> GgufFile::open(const std::string& path) {
  auto source = open_file_source(path);
  if (!source) return source.error();
  return parse(std::move(*source), path);
}

Result<std::shared_ptr<const GgufFile>> GgufFile::parse(std::shared_ptr<const ByteSource> source,
                                                        std::string label, const GgufLimits& limits) {
  return GgufParser(std::move(source), std::move(label), limits).run();
}

namespace {

Error wrong_kind(std::string_view key, const GgufValue& value, const char* wanted) {
  return fail(Errc::bad_file, "metadata key " + quoted(key) + " is " + std::string(value.kind()) + "; " +
                                  wanted + " is needed");
}

template <class T>
Result<T> as(std::string_view key, const GgufValue& value, const char* wanted) {
  if (const T* held = std::get_if<T>(&value.data)) return *held;
  return wrong_kind(key, value, wanted);
}

}  // namespace

Result<const GgufValue*> GgufFile::value(std::string_view key) const {
  const auto found = metadata_.find(key);
  if (found == metadata_.end()) {
    return fail(Errc::bad_file, "metadata key " + quoted(key) +
                                    " is missing: the file is not a complete model of its "
                                    "architecture, convert it again");
  }
  return &found->second;
}

Result<std::int64_t> GgufFile::i64(std::string_view key) const {
  auto held = value(key);
  if (!held) return held.error();
  return as<std::int64_t>(key, **held, "an integer");
}

Result<std::uint32_t> GgufFile::u32(std::string_view key) const {
  auto held = i64(key);
  if (!held) return held.error();
  if (*held < 0 || *held > std::numeric_limits<std::uint32_t>::max()) {
    return fail(Errc::bad_file, "metadata key " + quoted(key) + " is " + std::to_string(*held) +
                                    ", which is not an unsigned number of 32 bits");
  }
  return static_cast<std::uint32_t>(*held);
}

Result<float> GgufFile::f32(std::string_view key) const {
  auto held = value(key);
  if (!held) return held.error();
  auto number = as<double>(key, **held, "a float");
  if (!number) return number.error();
  const auto narrowed = static_cast<float>(*number);
  if (!std::isfinite(narrowed)) {
    return fail(Errc::bad_file, "metadata key " + quoted(key) + " is not a finite number");
  }
  return narrowed;
}

Result<bool> GgufFile::boolean(std::string_view key) const {
  auto held = value(key);
  if (!held) return held.error();
  return as<bool>(key, **held, "a boolean");
}

Result<std::string> GgufFile::str(std::string_view key) const {
  auto held = value(key);
  if (!held) return held.error();
  return as<std::string>(key, **held, "a string");
}

Result<std::uint32_t> GgufFile::u32_or(std::string_view key, std::uint32_t fallback) const {
  if (!has(key)) return fallback;
  return u32(key);
}

Result<float> GgufFile::f32_or(std::string_view key, float fallback) const {
  if (!has(key)) return fallback;
  return f32(key);
}

Result<bool> GgufFile::boolean_or(std::string_view key, bool fallback) const {
  if (!has(key)) return fallback;
  return boolean(key);
}

Result<std::string> GgufFile::str_or(std::string_view key, std::string fallback) const {
  if (!has(key)) return fallback;
  return str(key);
}

Result<std::span<const std::string>> GgufFile::strings(std::string_view key) const {
  auto held = value(key);
  if (!held) return held.error();
  if (const auto* array = std::get_if<GgufValue::Strings>(&(*held)->data))
    return std::span<const std::string>(*array);
  return wrong_kind(key, **held, "an array of strings");
}

Result<std::span<const std::int64_t>> GgufFile::integers(std::string_view key) const {
  auto held = value(key);
  if (!held) return held.error();
  if (const auto* array = std::get_if<GgufValue::Integers>(&(*held)->data)) {
    return std::span<const std::int64_t>(*array);
  }
  return wrong_kind(key, **held, "an array of integers");
}

Result<std::span<const double>> GgufFile::floats(std::string_view key) const {
  auto held = value(key);
  if (!held) return held.error();
  if (const auto* array = std::get_if<GgufValue::Floats>(&(*held)->data))
    return std::span<const double>(*array);
  return wrong_kind(key, **held, "an array of floats");
}

const GgufTensor* GgufFile::find(std::string_view name) const {
  const auto found = tensor_index_.find(name);
  return found == tensor_index_.end() ? nullptr : &tensors_[found->second];
}

Result<const GgufTensor*> GgufFile::require(std::string_view name) const {
  if (const GgufTensor* tensor = find(name)) return tensor;
  return fail(Errc::bad_file, path_ + ": tensor " + quoted(name) +
                                  " is missing: the file is not a complete model of " +
                                  "its architecture, convert it again");
}

Result<void> GgufFile::read(const GgufTensor& tensor, std::span<std::byte> out) const {
  if (out.size() != tensor.bytes) {
    return fail(Errc::internal, "tensor " + quoted(tensor.name) + " is " + text(tensor.bytes) +
                                    " bytes, not " + text(out.size()));
  }
  auto done = source_->read_at(tensor.file_offset, out);
  if (!done)
    return fail(done.error().code, path_ + ": tensor " + quoted(tensor.name) + ": " + done.error().message);
  return {};
}

}  // namespace helios::model
