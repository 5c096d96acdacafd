#pragma once
// The text stage: ids to text, off the step loop. The only place that ends a stream.

#include <memory>
#include <unordered_map>

#include "actors/wiring.hpp"
#include "model/detokenizer.hpp"
#include "model/model_file.hpp"
#include "model/stop_matcher.hpp"
#include "runtime/actor.hpp"
#include "runtime/metrics.hpp"

namespace helios::actors {

struct TextStreamOptions {
  std::string model_name;
  std::shared_ptr<const model::ModelFile> file;
  std::chrono::milliseconds write_deadline{10'000};
  std::size_t pending_bytes_max = std::size_t{1}
                                  << 20;  // text kept for a full stream before its request is ended
  runtime::Registry* metrics = nullptr;
};

/// Detokenizes, holds back what could be a stop string, counts usage, writes to bounded streams and never
/// waits for a reader: text that does not fit is kept (bounded) and merged; a stream that stays full for the
/// write deadline ends its request. Exactly one Finish per OpenText, also when the actor stops.
class TextStream final : public runtime::Actor<TextStream, WireText, OpenText, StepText> {
 public:
  explicit TextStream(TextStreamOptions options);
  ~TextStream();

  runtime::Task<> on(WireText msg);
  runtime::Task<> on(OpenText msg);
  runtime::Task<> on(StepText msg);
  runtime::Task<> on_stop();

 private:
  struct Entry;
  struct Meters;
  void push(Entry& entry, SampledToken& token, runtime::TimePoint at);
  void write(Entry& entry, runtime::TimePoint at);
  void finish(Entry& entry, FinishReason reason, std::optional<Error> error);
  void stop_early(Entry& entry, FinishReason reason, std::optional<Error> error);

  TextStreamOptions options_;
  std::unordered_map<RequestId, std::unique_ptr<Entry>> entries_;  // bounded by the host's live requests
  std::optional<WireText> wire_;
  std::unique_ptr<Meters> meters_;
};

}  // namespace helios::actors
