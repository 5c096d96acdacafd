#include "gpu/file_reader.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

namespace helios::gpu {

namespace {

std::string system_message(const std::string& path, const char* what) {
  return path + ": " + what + ": " + std::system_category().message(errno);
}

}  // namespace

Result<std::shared_ptr<FileReader>> FileReader::open(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return fail(Errc::io_error, system_message(path, "cannot open"));
  struct stat info{};
  if (::fstat(descriptor, &info) != 0 || !S_ISREG(info.st_mode)) {
    ::close(descriptor);
    return fail(Errc::io_error, path + ": not a regular file");
  }
  return std::shared_ptr<FileReader>(
      new FileReader(path, descriptor, static_cast<std::uint64_t>(info.st_size)));
}

FileReader::FileReader(std::string path, int descriptor, std::uint64_t size)
    : path_(std::move(path)), descriptor_(descriptor), size_(size) {}

FileReader::~FileReader() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

Result<void> FileReader::read_at(std::uint64_t offset, std::span<std::byte> out) const {
  if (offset > size_ || out.size() > size_ - offset) {
    return fail(Errc::bad_file, path_ + ": bytes " + std::to_string(offset) + " to " +
                                    std::to_string(offset + out.size()) + " are beyond the file's " +
                                    std::to_string(size_));
  }
  while (!out.empty()) {
    const ssize_t got = ::pread(descriptor_, out.data(), out.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail(Errc::io_error, system_message(path_, "cannot read"));
    if (got == 0)
      return fail(Errc::bad_file, path_ + ": ends at byte " + std::to_string(offset) + ", it was cut short");
    bytes_read_.fetch_add(static_cast<std::uint64_t>(got), std::memory_order_relaxed);
    offset += static_cast<std::uint64_t>(got);
    out = out.subspan(static_cast<std::size_t>(got));
  }
  return {};
}

}  // namespace helios::gpu
