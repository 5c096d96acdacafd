#include "model/safetensors.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <set>
#include <tuple>
#include <utility>

namespace helios::model {
namespace {

struct TypeRow {
  std::string_view name;
  std::size_t bytes;
};
constexpr std::array<TypeRow, 10> kTypes{{{"F64", 8},
                                          {"F32", 4},
                                          {"F16", 2},
                                          {"BF16", 2},
                                          {"I64", 8},
                                          {"I32", 4},
                                          {"I16", 2},
                                          {"I8", 1},
                                          {"U8", 1},
                                          {"BOOL", 1}}};

std::string quoted(std::string_view name) {
  std::string out = "'";
  for (const char c : name.substr(0, 80)) out += (c >= ' ' && c <= '~') ? c : '?';
  if (name.size() > 80) out += "...";
  return out + "'";
}

Error damaged(std::string what) {
  return fail(Errc::bad_file, std::move(what) + ": the file is damaged");
}

void append_utf8(std::string& out, std::uint32_t code) {
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xC0 | (code >> 6));
    out += static_cast<char>(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    out += static_cast<char>(0xE0 | (code >> 12));
    out += static_cast<char>(0x80 | ((code >> 6) & 0x3F));
    out += static_cast<char>(0x80 | (code & 0x3F));
  } else {
    out += static_cast<char>(0xF0 | (code >> 18));
    out += static_cast<char>(0x80 | ((code >> 12) & 0x3F));
    out += static_cast<char>(0x80 | ((code >> 6) & 0x3F));
    out += static_cast<char>(0x80 | (code & 0x3F));
  }
}

// The part of JSON that a header may use: objects of strings, numbers and arrays of whole numbers. Unlike a
// general parser it refuses a name that appears twice, and it never recurses.
class JsonScanner {
 public:
  explicit JsonScanner(std::string_view text) : text_(text) {}

  bool take(char wanted) {
    skip_space();
    if (at_ >= text_.size() || text_[at_] != wanted) return false;
    ++at_;
    return true;
  }
  bool at_end() {
    skip_space();
    return at_ == text_.size();
  }
  Error unexpected(const char* wanted) const {
    return damaged("the header's JSON has no " + std::string(wanted) + " at byte " + std::to_string(at_));
  }

  Result<std::string> string() {
    if (!take('"')) return unexpected("string");
    std::string out;
    while (at_ < text_.size()) {
      const char c = text_[at_++];
      if (c == '"') return out;
      if (static_cast<unsigned char>(c) < 0x20) break;
      if (c != '\\') {
        out += c;
        continue;
      }
      if (at_ >= text_.size()) break;
      constexpr std::string_view kEscapes = "\"\\/bfnrt";
      constexpr std::string_view kMeanings = "\"\\/\b\f\n\r\t";
      const char escape = text_[at_++];
      if (const auto known = kEscapes.find(escape); known != std::string_view::npos) {
        out += kMeanings[known];
      } else if (escape != 'u' || !unicode_escape(out)) {
        return unexpected("valid escape");
      }
    }
    return unexpected("closed string");
  }

  Result<std::uint64_t> number() {
    skip_space();
    const std::size_t begin = at_;
    std::uint64_t value = 0;
    for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_) {
      if (!checked_multiply(value, 10, value) ||
          !checked_add(value, static_cast<std::uint64_t>(text_[at_] - '0'), value)) {
        return damaged("a number in the header is too large");
      }
    }
    if (at_ == begin) return unexpected("whole number");
    return value;
  }

  Result<std::vector<std::uint64_t>> numbers(std::size_t most) {
    if (!take('[')) return unexpected("array");
    std::vector<std::uint64_t> out;
    if (take(']')) return out;
    do {
      auto value = number();
      if (!value) return value.error();
      if (out.size() == most)
        return damaged("an array in the header has more than " + std::to_string(most) + " numbers");
      out.push_back(*value);
    } while (take(','));
    if (!take(']')) return unexpected("end of an array");
    return out;
  }

 private:
  void skip_space() {
    while (at_ < text_.size() && std::strchr(" \t\r\n", text_[at_]) != nullptr && text_[at_] != '\0') ++at_;
  }

  bool hex4(std::uint32_t& out) {
    if (text_.size() - at_ < 4) return false;
    out = 0;
    for (int i = 0; i < 4; ++i) {
      const char c = text_[at_++];
      if (c >= '0' && c <= '9') {
        out = out * 16 + static_cast<std::uint32_t>(c - '0');
      } else if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f') {
        out = out * 16 + static_cast<std::uint32_t>((c | 0x20) - 'a' + 10);
      } else {
        return false;
      }
    }
    return true;
  }

  bool unicode_escape(std::string& out) {
    std::uint32_t code = 0;
    if (!hex4(code)) return false;
    if (code >= 0xD800 && code < 0xDC00) {  // the first half of a pair
      std::uint32_t low = 0;
      if (text_.substr(at_, 2) != "\\u") return false;
      at_ += 2;
      if (!hex4(low) || low < 0xDC00 || low > 0xDFFF) return false;
      code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
    } else if (code >= 0xDC00 && code <= 0xDFFF) {
      return false;
    }
    append_utf8(out, code);
    return true;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

std::string_view to_string(SafetensorsType type) noexcept {
  return kTypes[static_cast<std::size_t>(type)].name;
}

std::size_t element_bytes(SafetensorsType type) noexcept {
  return kTypes[static_cast<std::size_t>(type)].bytes;
}

std::optional<gpu::DataType> device_type(SafetensorsType type) noexcept {
  switch (type) {
    case SafetensorsType::f32:
      return gpu::DataType::f32;
    case SafetensorsType::f16:
      return gpu::DataType::f16;
    case SafetensorsType::bf16:
      return gpu::DataType::bf16;
    default:
      return std::nullopt;
  }
}

std::int64_t SafetensorsTensor::rows() const noexcept {
  std::int64_t rows = 1;
  for (std::size_t i = 0; i + 1 < shape.size(); ++i) rows *= shape[i];
  return rows;
}

class SafetensorsParser {
 public:
  SafetensorsParser(std::shared_ptr<const ByteSource> source, std::string label)
      : source_(std::move(source)), label_(std::move(label)) {}

  Result<std::shared_ptr<const Safetensors>> run() {
    file_.reset(new Safetensors());
    auto parsed = header();
    if (!parsed) return fail(parsed.error().code, label_ + ": " + parsed.error().message);
    file_->path_ = label_;
    file_->source_ = source_;
    return std::shared_ptr<const Safetensors>(std::move(file_));
  }

 private:
  Result<void> header() {
    std::uint64_t length = 0;
    if (source_->size() < sizeof(length)) {
      return fail(Errc::bad_file, "not a safetensors file (shorter than 8 bytes)");
    }
    if (auto read = source_->read_at(0, std::as_writable_bytes(std::span(&length, 1))); !read)
      return read.error();
    if (length > Safetensors::kMaxHeaderBytes || length > source_->size() - 8) {
      return fail(Errc::bad_file, "not a safetensors file: its header would be " + std::to_string(length) +
                                      " bytes, more than the file holds or than is allowed");
    }
    std::string text(static_cast<std::size_t>(length), '\0');
    if (auto read = source_->read_at(8, std::as_writable_bytes(std::span(text))); !read) return read.error();
    data_start_ = 8 + length;
    if (auto read = entries(text); !read) return read.error();
    return place();
  }

  Result<void> entries(std::string_view text) {
    JsonScanner in(text);
    if (!in.take('{')) return fail(Errc::bad_file, "not a safetensors file: its header is not a JSON object");
    bool metadata_seen = false;
    if (!in.take('}')) {
      do {
        auto name = in.string();
        if (!name) return name.error();
        if (!in.take(':')) return in.unexpected("':'");
        if (*name == "__metadata__") {
          if (std::exchange(metadata_seen, true)) return damaged("'__metadata__' appears twice");
          if (auto read = metadata(in); !read) return read.error();
        } else if (auto read = tensor(in, std::move(*name)); !read) {
          return read.error();
        }
      } while (in.take(','));
      if (!in.take('}')) return in.unexpected("end of the object");
    }
    if (!in.at_end()) return in.unexpected("end");
    return {};
  }

  Result<void> metadata(JsonScanner& in) {
    if (!in.take('{')) return in.unexpected("object for '__metadata__'");
    if (in.take('}')) return {};
    do {
      auto key = in.string();
      if (!key) return key.error();
      if (!in.take(':')) return in.unexpected("':'");
      auto value = in.string();
      if (!value) return value.error();
      if (file_->metadata_.size() == Safetensors::kMaxTensors)
        return damaged("'__metadata__' has too many entries");
      const std::string shown = quoted(*key);
      if (!file_->metadata_.emplace(std::move(*key), std::move(*value)).second) {
        return damaged("the metadata key " + shown + " appears twice");
      }
    } while (in.take(','));
    if (!in.take('}')) return in.unexpected("end of '__metadata__'");
    return {};
  }

  Result<void> tensor(JsonScanner& in, std::string name) {
    const std::string who = "tensor " + quoted(name);
    if (file_->tensors_.size() == Safetensors::kMaxTensors) return damaged("there are too many tensors");
    if (name.empty()) return damaged("a tensor has no name");
    if (!names_.insert(name).second) return damaged(who + " appears twice");
    SafetensorsTensor tensor;
    tensor.name = std::move(name);
    std::optional<std::string> type;
    std::optional<std::vector<std::uint64_t>> shape;
    std::optional<std::vector<std::uint64_t>> offsets;
    if (!in.take('{')) return in.unexpected("object for a tensor");
    do {
      auto field = in.string();
      if (!field) return field.error();
      if (!in.take(':')) return in.unexpected("':'");
      if (*field == "dtype" && !type) {
        auto value = in.string();
        if (!value) return value.error();
        type = std::move(*value);
      } else if (*field == "shape" && !shape) {
        auto value = in.numbers(Safetensors::kMaxDims);
        if (!value) return value.error();
        shape = std::move(*value);
      } else if (*field == "data_offsets" && !offsets) {
        auto value = in.numbers(2);
        if (!value) return value.error();
        offsets = std::move(*value);
      } else {
        return damaged(who + " has a field " + quoted(*field) + " twice or that no such file has");
      }
    } while (in.take(','));
    if (!in.take('}')) return in.unexpected("end of a tensor");
    if (!type || !shape || !offsets || offsets->size() != 2) {
      return damaged(who + " needs dtype, shape and two data_offsets");
    }
    const auto known =
        std::find_if(kTypes.begin(), kTypes.end(), [&](const TypeRow& row) { return row.name == *type; });
    if (known == kTypes.end()) {
      return fail(Errc::unsupported, who + " is of type " + quoted(*type) + ", which is not read");
    }
    tensor.type = static_cast<SafetensorsType>(known - kTypes.begin());
    std::uint64_t bytes = known->bytes;
    for (const std::uint64_t extent : *shape) {
      if (extent > (std::uint64_t{1} << 48) || !checked_multiply(bytes, extent, bytes)) {
        return damaged(who + " is larger than any file");
      }
      tensor.shape.push_back(static_cast<std::int64_t>(extent));
    }
    const auto [begin, end] = std::pair{(*offsets)[0], (*offsets)[1]};
    if (begin > end || end > source_->size() - data_start_) {
      return damaged(who + " reaches beyond the end of the file");
    }
    if (end - begin != bytes) {
      return damaged(who + " has " + std::to_string(end - begin) + " bytes, but its shape needs " +
                     std::to_string(bytes));
    }
    tensor.file_offset = data_start_ + begin;
    tensor.bytes = bytes;
    file_->tensors_.push_back(std::move(tensor));
    return {};
  }

  // The format's rule: sorted by offset, the tensors are the data, without holes. So they cannot overlap
  // either.
  Result<void> place() {
    auto& tensors = file_->tensors_;
    std::sort(tensors.begin(), tensors.end(), [](const SafetensorsTensor& a, const SafetensorsTensor& b) {
      return std::tie(a.file_offset, a.bytes, a.name) < std::tie(b.file_offset, b.bytes, b.name);
    });
    std::uint64_t at = data_start_;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      if (tensors[i].file_offset != at) {
        return damaged("tensor " + quoted(tensors[i].name) + " overlaps another or leaves a hole before it");
      }
      at += tensors[i].bytes;
      file_->index_.emplace(tensors[i].name, i);
    }
    if (at != source_->size()) return damaged("there are bytes after the last tensor");
    return {};
  }

  std::shared_ptr<const ByteSource> source_;
  std::string label_;
  std::uint64_t data_start_ = 0;
  std::set<std::string, std::less<>> names_;
  std::shared_ptr<Safetensors> file_;
};

Result<std::shared_ptr<const Safetensors>> Safetensors::open(const std::string& path) {
  auto source = open_file_source(path);
  if (!source) return source.error();
  return parse(std::move(*source), path);
}

Result<std::shared_ptr<const Safetensors>> Safetensors::parse(std::shared_ptr<const ByteSource> source,
                                                              std::string label) {
  return SafetensorsParser(std::move(source), std::move(label)).run();
}

Result<std::string> Safetensors::metadata_value(std::string_view key) const {
  const auto found = metadata_.find(key);
  if (found != metadata_.end()) return found->second;
  return fail(Errc::bad_file,
              path_ + ": the metadata has no " + quoted(key) + ": write the file again with it");
}

const SafetensorsTensor* Safetensors::find(std::string_view name) const {
  const auto found = index_.find(name);
  return found == index_.end() ? nullptr : &tensors_[found->second];
}

Result<const SafetensorsTensor*> Safetensors::require(std::string_view name) const {
  if (const SafetensorsTensor* tensor = find(name)) return tensor;
  return fail(Errc::bad_file, path_ + ": tensor " + quoted(name) + " is missing");
}

Result<void> Safetensors::read(const SafetensorsTensor& tensor, std::span<std::byte> out) const {
  if (out.size() != tensor.bytes) {
    return fail(Errc::internal, "tensor " + quoted(tensor.name) + " is " + std::to_string(tensor.bytes) +
                                    " bytes, not " + std::to_string(out.size()));
  }
  auto done = source_->read_at(tensor.file_offset, out);
  if (!done)
    return fail(done.error().code, path_ + ": tensor " + quoted(tensor.name) + ": " + done.error().message);
  return {};
}

}  // namespace helios::model
