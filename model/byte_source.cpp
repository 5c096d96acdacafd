#include "model/byte_source.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace helios::model {
namespace {

std::string system_reason() {
  return std::strerror(errno);
}

Error past_end(std::uint64_t offset, std::size_t wanted, std::uint64_t size) {
  return fail(Errc::bad_file, "the file ends at byte " + std::to_string(size) + ", but " +
                                  std::to_string(wanted) + " bytes are needed at " + std::to_string(offset) +
                                  ": it is cut short or damaged, fetch it again");
}

bool inside(std::uint64_t offset, std::size_t wanted, std::uint64_t size) {
  return offset <= size && wanted <= size - offset;
}

class FileSource final : public ByteSource {
 public:
  FileSource(int descriptor, std::uint64_t size) : descriptor_(descriptor), size_(size) {}
  ~FileSource() override { ::close(descriptor_); }
  FileSource(const FileSource&) = delete;
  FileSource& operator=(const FileSource&) = delete;

  std::uint64_t size() const noexcept override { return size_; }

  Result<void> read_at(std::uint64_t offset, std::span<std::byte> out) const override {
    if (!inside(offset, out.size(), size_)) return past_end(offset, out.size(), size_);
    while (!out.empty()) {
      const ssize_t count = ::pread(descriptor_, out.data(), out.size(), static_cast<off_t>(offset));
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return fail(Errc::io_error, "cannot read: " + system_reason());
      if (count == 0) return past_end(offset, out.size(), offset);  // it shrank while we read
      offset += static_cast<std::uint64_t>(count);
      out = out.subspan(static_cast<std::size_t>(count));
    }
    return {};
  }

 private:
  int descriptor_;
  std::uint64_t size_;
};

class MemorySource final : public ByteSource {
 public:
  explicit MemorySource(std::span<const std::byte> bytes) : bytes_(bytes) {}
  std::uint64_t size() const noexcept override { return bytes_.size(); }
  Result<void> read_at(std::uint64_t offset, std::span<std::byte> out) const override {
    if (!inside(offset, out.size(), bytes_.size())) return past_end(offset, out.size(), bytes_.size());
    if (!out.empty()) std::memcpy(out.data(), bytes_.data() + offset, out.size());
    return {};
  }

 private:
  std::span<const std::byte> bytes_;
};

}  // namespace

Result<std::shared_ptr<const ByteSource>> open_file_source(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return fail(Errc::io_error, "cannot open " + path + ": " + system_reason());
  struct stat status{};
  if (::fstat(descriptor, &status) != 0) {
    const std::string reason = system_reason();
    ::close(descriptor);
    return fail(Errc::io_error, "cannot look at " + path + ": " + reason);
  }
  if (!S_ISREG(status.st_mode)) {
    ::close(descriptor);
    return fail(Errc::io_error, path + " is not a regular file: name the model file itself");
  }
  return std::shared_ptr<const ByteSource>(
      std::make_shared<FileSource>(descriptor, static_cast<std::uint64_t>(status.st_size)));
}

Result<std::string> read_text(const std::string& path, std::uint64_t most_bytes, Errc too_large) {
  const Result<std::shared_ptr<const ByteSource>> source = open_file_source(path);
  if (!source) return source.error();
  if ((*source)->size() > most_bytes) {
    return fail(too_large, path + " has " + std::to_string((*source)->size()) + " bytes, at most " +
                               std::to_string(most_bytes) + " are read: it is not what its name says");
  }
  std::string text(static_cast<std::size_t>((*source)->size()), '\0');
  if (Result<void> read = (*source)->read_at(0, std::as_writable_bytes(std::span(text))); !read)
    return fail(read.error().code, path + ": " + read.error().message);
  return text;
}

std::shared_ptr<const ByteSource> memory_source(std::span<const std::byte> bytes) {
  return std::make_shared<MemorySource>(bytes);
}

}  // namespace helios::model
