// Runs a fuzz target without libFuzzer: over each file of the given folders, then over small changes of it,
// chosen by a fixed seed. A violated check ends the program with status 1 and leaves the input in
// crash-input.

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

using Bytes = std::vector<std::uint8_t>;

constexpr int kChangesPerFile = 400;

Bytes current;  // what is being run, for the handler

extern "C" void on_abort(int) {
  if (std::FILE* file = std::fopen("crash-input", "wb")) {
    std::fwrite(current.data(), 1, current.size(), file);
    std::fclose(file);
  }
  std::fputs("a check failed; the input is in crash-input\n", stderr);
  std::_Exit(1);
}

void run(Bytes input) {
  current = std::move(input);
  LLVMFuzzerTestOneInput(current.data(), current.size());
}

Bytes changed(Bytes bytes, std::mt19937& rng) {
  const auto below = [&](std::size_t bound) {
    return std::uniform_int_distribution<std::size_t>(0, bound - 1)(rng);
  };
  for (std::size_t changes = 1 + below(3); changes > 0 && !bytes.empty(); --changes) {
    const std::size_t at = below(bytes.size());
    switch (below(5)) {
      case 0:
        bytes[at] = static_cast<std::uint8_t>(below(256));
        break;
      case 1:
        bytes[at] ^= static_cast<std::uint8_t>(1U << below(8));
        break;
      case 2:
        bytes.resize(at);
        break;
      case 3:
        bytes.erase(bytes.begin() + static_cast<std::ptrdiff_t>(at));
        break;
      default: {  // a piece again, somewhere else
        const std::size_t length = std::min(bytes.size() - at, 1 + below(16));
        const Bytes piece(bytes.begin() + static_cast<std::ptrdiff_t>(at),
                          bytes.begin() + static_cast<std::ptrdiff_t>(at + length));
        bytes.insert(bytes.begin() + static_cast<std::ptrdiff_t>(below(bytes.size())), piece.begin(),
                     piece.end());
      }
    }
  }
  return bytes;
}

}  // namespace

int main(int count, char** arguments) {
  std::signal(SIGABRT, on_abort);
  std::vector<std::filesystem::path> files;
  for (int i = 1; i < count; ++i) {
    for (const auto& entry : std::filesystem::directory_iterator(arguments[i])) {
      if (entry.is_regular_file()) files.push_back(entry.path());
    }
  }
  std::sort(files.begin(), files.end());
  if (files.empty()) {
    std::fputs("no inputs: name the folders of a corpus\n", stderr);
    return 2;
  }
  std::mt19937 rng(1);
  run({});
  for (const auto& path : files) {
    std::ifstream file(path, std::ios::binary);
    const Bytes bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    run(bytes);
    for (int i = 0; i < kChangesPerFile; ++i) run(changed(bytes, rng));
  }
  std::printf("%zu files, %d changes of each: no check failed\n", files.size(), kChangesPerFile);
  return 0;
}
