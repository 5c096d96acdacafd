#include "model/step_draft.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace helios::model {

int StepDraft::find_or_add(KvCache::Sequence* sequence) {
  // Rows of a sequence usually stand together, so look from the back.
  for (std::size_t i = after_.size(); i-- > 0;) {
    if (after_[i].sequence == sequence) return static_cast<int>(i);
  }
  after_.push_back({sequence, sequence->filled_, sequence->tokens_, sequence->row_depths_});
  return static_cast<int>(after_.size()) - 1;
}

Result<void> StepDraft::check_row(const StepRow& row, std::size_t number, const ModelConfig& config,
                                  const KvCache& cache, const Limits& limits) {
  auto bad = [&](const std::string& why) {
    return fail(Errc::bad_request, fmt::format("row {} (position {}, layers {}..{}): {}", number,
                                               row.position, row.first_layer + 1, row.last_layer, why));
  };
  if (row.sequence == nullptr || row.sequence->pools_ != cache.pools_) {
    return bad("its sequence has no blocks of this model; reserve them first");
  }
  if (row.position < 0 || row.position >= config.context) {
    return bad(fmt::format("outside the context of {}", config.context));
  }
  if (row.first_layer < 0 || row.first_layer >= row.last_layer || row.last_layer > limits.resident_layers) {
    return bad(fmt::format("the resident layers are 1..{}", limits.resident_layers));
  }
  if (row.first_layer == 0 && (row.token < 0 || row.token >= config.vocab)) {
    return bad(fmt::format("token {} is outside 0..{}", row.token, config.vocab - 1));
  }
  const int table = find_or_add(row.sequence);
  After& after = after_[static_cast<std::size_t>(table)];
  const auto position = static_cast<std::size_t>(row.position);
  const std::size_t block = position / static_cast<std::size_t>(cache.options().block_tokens);
  const int pseudo = cache.pseudo_layer_of(row.last_layer);

  auto fill = [&](int layer) -> Result<void> {
    const auto l = static_cast<std::size_t>(layer);
    if (row.sequence->blocks_[l].size() <= block)
      return bad(fmt::format("no block is reserved in layer {}", layer + 1));
    if (after.filled[l] < row.position) {
      return bad(fmt::format("layer {} is filled to position {} only", layer + 1, after.filled[l]));
    }
    after.filled[l] = std::max(after.filled[l], row.position + 1);
    return {};
  };
  if (row.first_layer > 0) {
    const int depth = position < after.row_depths.size() ? after.row_depths[position] : 0;
    if (depth != row.first_layer) return bad(fmt::format("its stored row is of depth {} (0: none)", depth));
  } else {
    if (position > after.tokens.size())
      return bad(fmt::format("the sequence has {} positions", after.tokens.size()));
    if (position < after.tokens.size()) {  // run again from here: what followed is no more
      for (std::int32_t& filled : after.filled) filled = std::min(filled, row.position);
    }
    after.tokens.resize(position);
    after.tokens.push_back(row.token);
    after.row_depths.resize(position, 0);
    after.row_depths.push_back(0);
  }
  for (int layer = row.first_layer; layer < row.last_layer; ++layer) {
    if (Result<void> ok = fill(layer); !ok) return ok;
  }
  if (pseudo >= 0) {
    if (Result<void> ok = fill(pseudo); !ok) return ok;
  }
  const bool save =
      cache.options().keep_rows && row.last_layer < config.layers && row.sequence->row_blocks_.size() > block;
  if (save) after.row_depths[position] = row.last_layer;
  tables_.push_back(table);
  saves_.push_back(save ? 1 : 0);
  return {};
}

Result<void> StepDraft::check(const StepPlan& plan, const ModelConfig& config, const KvCache& cache,
                              const Limits& limits) {
  after_.clear();
  tables_.clear();
  saves_.clear();
  if (plan.rows.empty() || std::cmp_greater(plan.rows.size(), limits.max_rows)) {
    return fail(Errc::bad_request,
                fmt::format("a step of {} rows: 1 to {} are possible", plan.rows.size(), limits.max_rows));
  }
  if (std::cmp_greater(plan.outputs.size(), limits.max_outputs)) {
    return fail(Errc::bad_request, fmt::format("a step of {} outputs: at most {} are possible",
                                               plan.outputs.size(), limits.max_outputs));
  }
  std::vector<int> owners(plan.outputs.size(), 0);
  for (std::size_t i = 0; i < plan.rows.size(); ++i) {
    const StepRow& row = plan.rows[i];
    if (Result<void> ok = check_row(row, i, config, cache, limits); !ok) return ok;
    if (row.output < 0) continue;
    if (std::cmp_greater_equal(row.output, plan.outputs.size())) {
      return fail(Errc::bad_request,
                  fmt::format("row {} names output {} of {}", i, row.output, plan.outputs.size()));
    }
    const auto output = static_cast<std::size_t>(row.output);
    ++owners[output];
    if (plan.outputs[output].depth != row.last_layer) {
      return fail(Errc::bad_request, fmt::format("output {} is at depth {}, its row {} ends at {}", output,
                                                 plan.outputs[output].depth, i, row.last_layer));
    }
  }
  for (std::size_t i = 0; i < owners.size(); ++i) {
    if (owners[i] != 1)
      return fail(Errc::bad_request, fmt::format("output {} has {} rows, not one", i, owners[i]));
  }
  if (std::cmp_greater(after_.size(), limits.max_sequences)) {
    return fail(Errc::bad_request, fmt::format("a step of {} sequences: at most {} are possible",
                                               after_.size(), limits.max_sequences));
  }
  return {};
}

void StepDraft::swap() {
  for (After& after : after_) {
    after.sequence->filled_.swap(after.filled);
    after.sequence->tokens_.swap(after.tokens);
    after.sequence->row_depths_.swap(after.row_depths);
  }
}

}  // namespace helios::model
