#include "apps/exit_judge.hpp"

#include <algorithm>

#include "model/sequential.hpp"

namespace helios::apps {

namespace {

constexpr int kChunkRows = 64;

}  // namespace

Result<ExitJudge> ExitJudge::create(gpu::Device& device, std::shared_ptr<const model::ModelFile> file) {
  ExitJudge judge;
  model::TransformerOptions options;
  options.max_rows = kChunkRows;
  options.max_outputs = kChunkRows;
  options.max_sequences = 1;
  Result<std::unique_ptr<model::Transformer>> transformer = model::Transformer::create(device, file, options);
  if (!transformer) return transformer.error();
  judge.transformer_ = std::move(*transformer);
  const int layers = file->config().layers;
  if (Result<void> loaded = model::load_layers(device, file, *judge.transformer_, layers); !loaded)
    return loaded.error();
  judge.file_ = std::move(file);
  return judge;
}

Result<std::vector<std::int32_t>> ExitJudge::answer(std::span<const std::int32_t> prompt, int max_tokens) {
  model::Sequential sequence(*transformer_, file_->config().layers);
  model::Sampling sampling;
  sampling.temperature = 0;
  sampling.max_tokens = max_tokens;
  sampling.stop_ids.assign(file_->tokenizer().end_ids().begin(), file_->tokenizer().end_ids().end());
  return sequence.generate(prompt, sampling);
}

Result<std::vector<actors::policy::JudgedToken>> ExitJudge::judge(int layer,
                                                                  std::span<const std::int32_t> prompt,
                                                                  std::span<const std::int32_t> answer) {
  std::vector<std::int32_t> ids(prompt.begin(), prompt.end());
  ids.insert(ids.end(), answer.begin(), answer.end() - 1);  // what follows the last token is nobody's choice
  const auto first = static_cast<int>(prompt.size()) - 1, end = static_cast<int>(ids.size());
  model::KvCache::Sequence sequence;
  if (Result<void> room = transformer_->kv_cache()->reserve(sequence, end, {0, layer}); !room)
    return room.error();
  std::vector<actors::policy::JudgedToken> judged;
  for (int begin = 0; begin < end; begin += kChunkRows) {
    model::StepPlan plan;
    for (int at = begin; at < std::min(begin + kChunkRows, end); ++at) {
      model::StepRow row{.sequence = &sequence, .position = at, .token = ids[static_cast<std::size_t>(at)]};
      row.last_layer = static_cast<std::int16_t>(layer);
      if (at >= first) {
        row.output = static_cast<std::int16_t>(plan.outputs.size());
        plan.outputs.push_back({.depth = layer});
      }
      plan.rows.push_back(row);
    }
    const Result<std::span<const model::StepResult>> results = model::run_step(*transformer_, plan);
    if (!results) return results.error();
    for (const model::StepResult& result : *results) {
      const std::int32_t wanted = answer[judged.size()];
      judged.push_back({result.confidence, !result.nan && result.token == wanted});
    }
  }
  return judged;
}

}  // namespace helios::apps
