#pragma once
// Where tests find the real model, which is too large for the repository.

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>

namespace helios::test {

/// SmolLM2-135M-Instruct in GGUF Q4_1: in $HELIOS_MODELS_DIR, else in models/ of the source tree. Absent:
/// nullopt.
inline std::optional<std::string> smollm2_path() {
  const char* folder = std::getenv("HELIOS_MODELS_DIR");
  const std::filesystem::path path =
      std::filesystem::path(folder != nullptr ? folder : HELIOS_SOURCE_DIR "/models") /
      "SmolLM2-135M-Instruct.Q4_1.gguf";
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return std::nullopt;
  return path.string();
}

/// One of the pair, Qwen2.5-Coder 0.5B and 1.5B Instruct in GGUF Q4_K_M (`size`: "0.5b" or "1.5b"): in
/// $HELIOS_PAIR_DIR, else in models/ of the source tree. Absent: nullopt.
inline std::optional<std::string> pair_path(const std::string& size) {
  const char* folder = std::getenv("HELIOS_PAIR_DIR");
  const std::filesystem::path path =
      std::filesystem::path(folder != nullptr ? folder : HELIOS_SOURCE_DIR "/models") /
      ("qwen2.5-coder-" + size + "-instruct-q4_k_m.gguf");
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return std::nullopt;
  return path.string();
}

}  // namespace helios::test
