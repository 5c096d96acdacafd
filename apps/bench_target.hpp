#pragma once
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "apps/engine_options.hpp"
#include "runtime/result.hpp"

namespace helios::apps {

using BenchTime = std::chrono::steady_clock::time_point;

/// One request of the benchmark, as the client saw it. Token times are those of their text's arrival.
struct RequestRecord {
  BenchTime sent, done;
  std::vector<BenchTime> token_times;
  int prompt_tokens = 0, completion_tokens = 0;
  std::map<int, int> exit_histogram;
  std::uint64_t text_hash = 0;  // FNV-1a of the token ids, or of the text where ids are not sent
  std::string error;            // "" when it ended well
};

struct BenchRequest {
  std::string prompt;  // raw text
  int output_tokens = 0;
};

/// What is measured: an engine in this process, or a server behind the line protocol. Any thread may call
/// run().
class BenchTarget {
 public:
  virtual ~BenchTarget() = default;
  virtual RequestRecord run(const BenchRequest& request) = 0;
  /// Whether a model of it has random weights.
  virtual bool synthetic() = 0;
};

Result<std::unique_ptr<BenchTarget>> make_local_target(EngineOptions options);
Result<std::unique_ptr<BenchTarget>> make_remote_target(std::string host_and_port, int exit_layer);

}  // namespace helios::apps
