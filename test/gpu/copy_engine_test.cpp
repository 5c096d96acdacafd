#include "gpu/copy_engine.hpp"

#include <unistd.h>
#include <catch2/catch_test_macros.hpp>
#include "test/gpu/result_text.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "gpu/host_device.hpp"
#include "gpu/load_parts.hpp"
#include "test/gpu/kernel_cases.hpp"

namespace helios::gpu {

using namespace std::chrono_literals;

namespace {

/// A file of the given bytes, removed at the end.
class TemporaryFile {
 public:
  explicit TemporaryFile(std::span<const std::byte> bytes) {
    char name[] = "/tmp/helios_copy_XXXXXX";
    const int descriptor = ::mkstemp(name);
    REQUIRE(descriptor >= 0);
    path_ = name;
    REQUIRE(::write(descriptor, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()));
    ::close(descriptor);
  }
  ~TemporaryFile() { ::unlink(path_.c_str()); }
  std::shared_ptr<FileReader> open() const { return FileReader::open(path_).value(); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

constexpr std::int64_t kRows = 3000, kCols = 1024;  // Q8_0: 3.1 MiB, four parts
constexpr std::uint64_t kSkip = 77;                 // tensors need not be aligned

std::vector<std::byte> file_bytes(const test::Weights& w) {
  std::vector<std::byte> bytes(kSkip + row_bytes(DataType::q8_0, kCols) * kRows);
  std::memcpy(bytes.data() + kSkip, w.file.data(), bytes.size() - kSkip);
  return bytes;
}

LoadRequest request_for(std::shared_ptr<FileReader> file, std::byte* destination) {
  return {.file = std::move(file),
          .pieces = {{.file_offset = kSkip,
                      .file_bytes = row_bytes(DataType::q8_0, kCols) * kRows,
                      .type = DataType::q8_0,
                      .rows = kRows,
                      .cols = kCols,
                      .destination = destination}}};
}

std::unique_ptr<HostDevice> make_device() {
  return HostDevice::create({.arena_bytes = 8 << 20, .threads = 1}).value();
}

}  // namespace

TEST_CASE("CopyEngine: reads each byte once and repacks in parts", "[gpu]") {
  const test::Weights w(DataType::q8_0, kRows, kCols, 4);
  const TemporaryFile file(file_bytes(w));
  const auto device = make_device();
  const std::size_t packed = device->packed_bytes(DataType::q8_0, kRows, kCols);
  const Slab slab = device->budget().reserve(packed, Use::weights).value();
  LoadRequest request = request_for(file.open(), slab.data());
  const auto reader = request.file;
  const std::size_t bytes = request.pieces[0].file_bytes;
  for (const LoadPart& part : split(request)) {
    CHECK(part.piece.file_bytes <= kCopyPieceBytes);
    CHECK((part.piece.file_offset - kSkip) % (16 * row_bytes(DataType::q8_0, kCols)) == 0);
  }
  std::vector<std::size_t> progress;
  request.progress = [&progress](std::size_t done) { progress.push_back(done); };
  const Copy copy = device->copy_engine().start(std::move(request)).value();
  REQUIRE(copy.event().wait_for(60s));
  CHECK(copy.bytes() == bytes);
  CHECK(reader->bytes_read() == bytes);
  CHECK(progress.size() == 4);
  CHECK(progress.back() == bytes);
  CHECK(std::memcmp(slab.data(), w.panels.data(), packed) == 0);
}

TEST_CASE("CopyEngine: vectors are widened to f32", "[gpu]") {
  std::vector<std::byte> bytes(12);
  const std::uint16_t halves[] = {float_to_half(1.5F), float_to_half(-2.0F), float_to_half(0.25F)};
  std::memcpy(bytes.data() + 6, halves, 6);
  const TemporaryFile file(bytes);
  const auto device = make_device();
  float out[3] = {};
  LoadRequest request{.file = file.open(),
                      .pieces = {{6, 6, DataType::f16, 1, 3, reinterpret_cast<std::byte*>(out), true}}};
  REQUIRE(device->copy_engine().start(std::move(request)).value().event().wait_for(60s));
  CHECK(out[0] == 1.5F);
  CHECK(out[1] == -2.0F);
  CHECK(out[2] == 0.25F);
}

TEST_CASE("CopyEngine: floats are quantised while they are repacked, each piece from its own file", "[gpu]") {
  constexpr std::int64_t kWideRows = 35, kWideCols = 96;
  const test::Weights f32(DataType::f32, kWideRows, kWideCols, 3),
      bf16(DataType::bf16, kWideRows, kWideCols, 4);
  const auto size = [](DataType type) { return row_bytes(type, kWideCols) * kWideRows; };
  const TemporaryFile first(std::span(f32.file.data(), size(DataType::f32)));
  const TemporaryFile second(std::span(bf16.file.data(), size(DataType::bf16)));
  const auto device = make_device();
  for (const DataType to : {DataType::q8_0, DataType::q4_1}) {
    INFO(to_string(to));
    const std::size_t packed = device->packed_bytes(to, kWideRows, kWideCols);
    test::Memory a(packed), b(packed);
    const auto piece = [&](DataType type, std::byte* destination, std::shared_ptr<FileReader> file) {
      return LoadPiece{.file_bytes = size(type),
                       .type = type,
                       .rows = kWideRows,
                       .cols = kWideCols,
                       .destination = destination,
                       .quantise_to = to,
                       .file = std::move(file)};
    };
    LoadRequest request{
        .file = first.open(),
        .pieces = {piece(DataType::f32, a.data(), nullptr), piece(DataType::bf16, b.data(), second.open())}};
    REQUIRE(device->copy_engine().start(std::move(request)).value().event().wait_for(60s));
    for (const auto& [weights, held] : {std::pair{&f32, &a}, {&bf16, &b}}) {
      std::vector<float> want(kWideCols), got(kWideCols);
      for (std::int64_t row = 0; row < kWideRows; ++row) {
        unpack_row(weights->matrix, row, want.data());
        unpack_row({to, kWideRows, kWideCols, held->data()}, row, got.data());
        for (std::size_t block = 0; block < kWideCols; block += 32) {
          const auto at = want.begin() + static_cast<std::ptrdiff_t>(block);
          const auto [low, high] = std::minmax_element(at, at + 32);
          const float reach = std::max(std::abs(*low), std::abs(*high));
          // Half a step, and the rounding of fp16 scales (of d over 127 or 15 steps, of m).
          const float limit = to == DataType::q8_0 ? reach / 127 * 0.5F + reach * 0x1p-10F
                                                   : (*high - *low) / 15 * 0.5F + reach * 0x1p-9F;
          for (std::size_t k = block; k < block + 32; ++k) {
            if (!(std::abs(got[k] - want[k]) <= limit)) FAIL("row " << row << " column " << k);
          }
        }
      }
    }
  }
}

TEST_CASE("CopyEngine: a truncated file and a read fault are errors of the event", "[gpu]") {
  const test::Weights w(DataType::q8_0, kRows, kCols, 4);
  const auto bytes = file_bytes(w);
  const TemporaryFile file(std::span(bytes).first(bytes.size() / 2));
  const auto device = make_device();
  test::Memory target(device->packed_bytes(DataType::q8_0, kRows, kCols));
  const Copy copy = device->copy_engine().start(request_for(file.open(), target.data())).value();
  CHECK(copy.event().wait_for(60s).error().code == Errc::bad_file);

  const TemporaryFile shrinking(bytes);  // cut after it was opened
  LoadRequest request = request_for(shrinking.open(), target.data());
  REQUIRE(::truncate(shrinking.path().c_str(), 1000) == 0);
  const Copy cut = device->copy_engine().start(std::move(request)).value();
  const Result<void> status = cut.event().wait_for(60s);
  CHECK(status.error().code == Errc::bad_file);
  CHECK(status.error().message.find("cut short") != std::string::npos);
}

TEST_CASE("CopyEngine: cancelled between parts; the next load succeeds", "[gpu]") {
  const test::Weights w(DataType::q8_0, kRows, kCols, 4);
  const TemporaryFile file(file_bytes(w));
  const auto device = make_device();
  test::Memory target(device->packed_bytes(DataType::q8_0, kRows, kCols));
  runtime::CancelSource cancel;
  LoadRequest request = request_for(file.open(), target.data());
  const auto reader = request.file;
  request.cancel = cancel.token();
  request.progress = [&cancel](std::size_t) { cancel.cancel(); };  // after the first part
  const Copy first = device->copy_engine().start(std::move(request)).value();
  const Copy second = device->copy_engine().start(request_for(file.open(), target.data())).value();
  CHECK(first.event().wait_for(60s).error().code == Errc::cancelled);
  CHECK(reader->bytes_read() <= kCopyPieceBytes);
  CHECK(second.event().wait_for(60s));
}

TEST_CASE("CopyEngine: requests whose numbers do not agree are refused", "[gpu]") {
  const test::Weights w(DataType::q8_0, 16, 32, 4);
  const TemporaryFile file(std::span(w.file.data(), 16 * 34));
  const auto device = make_device();
  test::Memory target(4096);
  const auto refused = [&](LoadPiece piece) {
    LoadRequest request{.file = file.open(), .pieces = {piece}};
    const auto copy = device->copy_engine().start(std::move(request));
    return !copy && copy.error().code == Errc::bad_request;
  };
  const LoadPiece good{0, 16 * 34, DataType::q8_0, 16, 32, target.data()};
  CHECK_FALSE(refused(good));
  LoadPiece bad = good;
  bad.file_bytes -= 1;
  CHECK(refused(bad));
  bad = good;
  bad.cols = 33;
  CHECK(refused(bad));
  bad = good;
  bad.destination = nullptr;
  CHECK(refused(bad));
  bad = good;
  bad.raw = true;
  CHECK(refused(bad));
  bad = good;
  bad.rows = -16;
  CHECK(refused(bad));
  bad = good;
  bad.quantise_to = DataType::q4_1;  // is quantised already
  CHECK(refused(bad));
  bad = {0, 16 * 32 * 4, DataType::f32, 16, 32, target.data()};
  bad.quantise_to = DataType::q4_0;  // nothing makes it
  CHECK(refused(bad));
  CHECK(device->copy_engine().start({}).error().code == Errc::bad_request);
  CHECK(FileReader::open("/nonexistent/model.gguf").error().code == Errc::io_error);
}

}  // namespace helios::gpu
