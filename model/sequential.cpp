#include "model/sequential.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace helios::model {

namespace {

constexpr std::chrono::minutes kLimit{10};  // for one load or step

}  // namespace

Result<void> load_layers(gpu::Device& device, const std::shared_ptr<const ModelFile>& file,
                         Transformer& transformer, int depth) {
  if (!transformer.has_globals()) {
    Result<GlobalLoad> load = start_load_globals(device, file);
    if (!load) return load.error();
    if (Result<void> done = load->copy.event().wait_for(kLimit); !done) return done;
    transformer.adopt(std::move(load->weights));
  }
  for (int layer = transformer.resident_layers(); layer < depth; ++layer) {
    Result<LayerLoad> load = start_load_layer(device, file, layer);
    if (!load) return load.error();
    if (Result<void> done = load->copy.event().wait_for(kLimit); !done) return done;
    transformer.adopt(layer, std::move(load->weights));
  }
  return {};
}

Result<std::span<const StepResult>> run_step(Transformer& transformer, const StepPlan& plan) {
  Result<gpu::Event> event = transformer.start(plan);
  if (!event) return event.error();
  if (Result<void> done = event->wait_for(kLimit); !done) return done.error();
  return transformer.results();
}

Result<StepResult> Sequential::feed(std::span<const std::int32_t> ids, const Sampling& sampling,
                                    bool want_logits, int chunk) {
  if (ids.empty()) return fail(Errc::bad_request, "no ids to feed");
  const int rows_max = transformer_.options().max_rows;
  const auto step = static_cast<std::size_t>(chunk > 0 ? std::min(chunk, rows_max) : rows_max);
  const int end = position_ + static_cast<int>(ids.size());
  if (Result<void> room = transformer_.kv_cache()->reserve(sequence_, end, {0, depth_}); !room)
    return room.error();
  Result<StepResult> last = StepResult{};
  for (std::size_t at = 0; at < ids.size(); at += step) {
    const std::size_t count = std::min(step, ids.size() - at);
    StepPlan plan;
    for (std::size_t i = 0; i < count; ++i) {
      plan.rows.push_back({.sequence = &sequence_,
                           .position = position_ + static_cast<int>(i),
                           .token = ids[at + i],
                           .first_layer = 0,
                           .last_layer = static_cast<std::int16_t>(depth_),
                           .output = -1});
    }
    if (at + count == ids.size()) {
      plan.rows.back().output = 0;
      plan.outputs.push_back({depth_, &sampling, counter_, want_logits});
    }
    const Result<std::span<const StepResult>> results = run_step(transformer_, plan);
    if (!results) return results.error();
    position_ += static_cast<int>(count);
    if (!results->empty()) last = results->front();
  }
  ++counter_;
  return last;
}

Result<std::vector<std::int32_t>> Sequential::generate(std::span<const std::int32_t> prompt,
                                                       const Sampling& sampling) {
  std::vector<std::int32_t> out;
  std::vector<std::int32_t> next(prompt.begin(), prompt.end());
  const auto stops = [&](std::int32_t id) {
    return std::find(sampling.stop_ids.begin(), sampling.stop_ids.end(), id) != sampling.stop_ids.end();
  };
  while (std::cmp_less(out.size(), sampling.max_tokens)) {
    const Result<StepResult> result = feed(next, sampling);
    if (!result) return result.error();
    if (result->nan)
      return fail(Errc::device_fault, fmt::format("the logits of token {} are not numbers", out.size()));
    out.push_back(result->token);
    if (stops(result->token)) break;
    next.assign(1, result->token);
  }
  return out;
}

Result<void> Sequential::catch_up(int depth, int chunk) {
  if (depth <= depth_)
    return fail(Errc::bad_request, fmt::format("depth {} is not deeper than {}", depth, depth_));
  if (Result<void> room = transformer_.kv_cache()->reserve(sequence_, position_, {depth_, depth}); !room)
    return room;
  const int step =
      chunk > 0 ? std::min(chunk, transformer_.options().max_rows) : transformer_.options().max_rows;
  for (int at = 0; at < position_; at += step) {
    StepPlan plan;
    for (int i = at; i < std::min(at + step, position_); ++i) {
      plan.rows.push_back({.sequence = &sequence_,
                           .position = i,
                           .token = 0,
                           .first_layer = static_cast<std::int16_t>(depth_),
                           .last_layer = static_cast<std::int16_t>(depth),
                           .output = -1});
    }
    if (const auto results = run_step(transformer_, plan); !results) return results.error();
  }
  depth_ = depth;
  return {};
}

}  // namespace helios::model
