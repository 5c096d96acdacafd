#include "model/gguf_writer.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "model/gguf.hpp"

namespace helios::model {

namespace {

constexpr std::uint64_t kAlignment = 32;
constexpr std::uint64_t padded(std::uint64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

// The file's numbers for kinds of values.
constexpr std::uint32_t kU32 = 4, kI32 = 5, kF32 = 6, kString = 8, kArray = 9;

Error system_error(const std::string& what) {
  return fail(Errc::io_error, fmt::format("{}: {}", what, std::strerror(errno)));
}

}  // namespace

GgufWriter::~GgufWriter() {
  if (descriptor_ < 0) return;
  ::close(descriptor_);
  ::unlink((path_ + ".part").c_str());
}

template <class T>
void GgufWriter::raw(T value) {
  keys_.append(reinterpret_cast<const char*>(&value), sizeof(T));
}
void GgufWriter::text(std::string_view value) {
  raw(std::uint64_t{value.size()});
  keys_.append(value);
}
void GgufWriter::begin_key(std::string_view name, std::uint32_t type) {
  text(name);
  raw(type);
  ++key_count_;
}
void GgufWriter::key(std::string_view name, std::uint32_t value) {
  begin_key(name, kU32);
  raw(value);
}
void GgufWriter::key(std::string_view name, float value) {
  begin_key(name, kF32);
  raw(value);
}
void GgufWriter::key(std::string_view name, std::string_view value) {
  begin_key(name, kString);
  text(value);
}
void GgufWriter::key(std::string_view name, const std::vector<std::string>& values) {
  begin_key(name, kArray);
  raw(kString);
  raw(std::uint64_t{values.size()});
  for (const std::string& value : values) text(value);
}
void GgufWriter::key(std::string_view name, const std::vector<std::int32_t>& values) {
  begin_key(name, kArray);
  raw(kI32);
  raw(std::uint64_t{values.size()});
  for (const std::int32_t value : values) raw(value);
}

void GgufWriter::tensor(std::string_view name, gpu::DataType type, std::int64_t rows, std::int64_t cols) {
  std::swap(keys_, tensors_);  // the helpers append to keys_
  text(name);
  raw(rows == 1 ? std::uint32_t{1} : std::uint32_t{2});
  raw(static_cast<std::uint64_t>(cols));
  if (rows != 1) raw(static_cast<std::uint64_t>(rows));
  raw(gguf_number(type));
  raw(data_bytes_);
  std::swap(keys_, tensors_);
  sizes_.push_back(gpu::row_bytes(type, cols) * static_cast<std::uint64_t>(rows));
  data_bytes_ += padded(sizes_.back());
}

std::string GgufWriter::header() const {
  std::string out = "GGUF";
  const auto put = [&out](auto value) { out.append(reinterpret_cast<const char*>(&value), sizeof(value)); };
  put(std::uint32_t{3});
  put(std::uint64_t{sizes_.size()});
  put(key_count_);
  out.append(keys_).append(tensors_);
  out.resize(padded(out.size()));
  return out;
}

std::uint64_t GgufWriter::file_bytes() const {
  return header().size() + data_bytes_;
}

Result<void> GgufWriter::open(const std::string& path) {
  path_ = path;
  descriptor_ = ::open((path + ".part").c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (descriptor_ < 0) return system_error("cannot write " + path + ".part");
  return write_all(std::as_bytes(std::span<const char>(header())));
}

Result<void> GgufWriter::write_all(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(descriptor_, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return system_error("cannot write " + path_ + ".part");
    bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
  return {};
}

Result<void> GgufWriter::append(std::span<const std::byte> bytes) {
  if (current_ >= sizes_.size() || bytes.size() > sizes_[current_] - current_bytes_) {
    return fail(Errc::bad_request,
                fmt::format("{}: tensor {} has fewer bytes than were given", path_, current_));
  }
  if (Result<void> written = write_all(bytes); !written) return written;
  current_bytes_ += bytes.size();
  if (current_bytes_ < sizes_[current_]) return {};
  constexpr std::byte kZeros[kAlignment] = {};
  const std::uint64_t gap = padded(current_bytes_) - current_bytes_;
  ++current_;
  current_bytes_ = 0;
  return write_all(std::span(kZeros).first(static_cast<std::size_t>(gap)));
}

Result<void> GgufWriter::finish() {
  if (current_ != sizes_.size()) {
    return fail(Errc::bad_request,
                fmt::format("{}: {} of {} tensors were written", path_, current_, sizes_.size()));
  }
  if (::close(std::exchange(descriptor_, -1)) != 0 ||
      std::rename((path_ + ".part").c_str(), path_.c_str()) != 0)
    return system_error("cannot write " + path_);
  return {};
}

}  // namespace helios::model
