#pragma once
// A small random Llama as a GGUF file, with a byte-level vocabulary: every test can have a model.

#include <cstdint>
#include <string>
#include <vector>

#include "gpu/data_type.hpp"

namespace helios::test {

struct TinyModelOptions {
  int layers = 6;
  int hidden = 64;  // a multiple of heads; of 32 for quantised types
  int heads = 4;
  int kv_heads = 2;
  int feed_forward = 128;
  int vocab = 320;  // 256 bytes, a few merges and control tokens, then unused ones
  int context = 512;
  gpu::DataType type = gpu::DataType::f32;       // of the matrices: f32, f16, q8_0, q4_1
  gpu::DataType head_type = gpu::DataType::f32;  // of the (tied) embedding
  std::uint64_t seed = 1;
};

/// Ids of the control tokens that the file defines.
inline constexpr std::int32_t kTinyEndOfText = 256;  // <|endoftext|>: EOS
inline constexpr std::int32_t kTinyTurnStart = 257;  // <|im_start|>
inline constexpr std::int32_t kTinyTurnEnd = 258;    // <|im_end|>

/// Writes the file (with a ChatML template). Throws std::runtime_error when it cannot be written.
void write_tiny_model(const std::string& path, const TinyModelOptions& options = {});

/// A fresh path in the system's temporary folder; the file is removed when this goes.
class TempFile {
 public:
  explicit TempFile(const std::string& suffix);
  ~TempFile();
  TempFile(const TempFile&) = delete;
  TempFile& operator=(const TempFile&) = delete;
  const std::string& path() const noexcept { return path_; }

 private:
  std::string path_;
};

}  // namespace helios::test
