#include "model/transformer.hpp"

#include <fmt/format.h>

#include <cassert>
#include <cmath>

#include "model/forward_program.hpp"
#include "model/memory_plan.hpp"
#include "model/step_draft.hpp"
#include "model/workspace.hpp"

namespace helios::model {

namespace {

constexpr std::chrono::milliseconds kLastStepLimit{50};  // for a step that still runs when its transformer goes

Result<void> check(const TransformerOptions& o) {
  auto bad = [](std::string why) { return fail(Errc::bad_request, std::move(why)); };
  for (const gpu::DataType type : {o.kv_type, o.row_type}) {
    if (type != gpu::DataType::f16 && type != gpu::DataType::f32) {
      return bad(fmt::format("KV and rows of type {}: F16 and F32 are possible", to_string(type)));
    }
  }
  if (o.max_rows < 1 || o.max_rows > 1 << 16) return bad(fmt::format("max_rows={}: 1 to 65536", o.max_rows));
  if (o.max_outputs < 1 || o.max_outputs > o.max_rows) {
    return bad(fmt::format("max_outputs={}: 1 to max_rows={}", o.max_outputs, o.max_rows));
  }
  if (o.max_sequences < 0 || o.max_sequences > o.max_rows) {
    return bad(fmt::format("max_sequences={}: 0 to max_rows={}", o.max_sequences, o.max_rows));
  }
  if (o.block_tokens < 1 || o.block_tokens > 1024)
    return bad(fmt::format("block_tokens={}: 1 to 1024", o.block_tokens));
  return {};
}

KvCacheOptions cache_options(const ModelFile& file, const TransformerOptions& o) {
  const ModelConfig& c = file.config();
  return {.layers = c.layers,
          .block_exits = file.exits() != nullptr ? file.exits()->block_layers() : std::vector<int>{},
          .kv_heads = c.kv_heads,
          .head_dim = c.head_dim,
          .hidden = c.hidden,
          .kv_type = o.kv_type,
          .row_type = o.row_type,
          .keep_rows = o.keep_rows,
          .block_tokens = o.block_tokens};
}

}  // namespace

struct Transformer::Parts {
  std::shared_ptr<const ModelFile> file;
  TransformerOptions options;
  std::shared_ptr<KvCache> cache;
  gpu::Slab workspace_slab;
  Workspace workspace;
  std::optional<GlobalWeights> globals;
  std::vector<LayerWeights> layers;

  StepDraft draft;
  std::optional<gpu::Event> last;
  std::vector<StepOutput> outputs;  // of the last plan
  std::vector<std::int32_t> slots;
  std::vector<StepResult> results;
  std::unique_ptr<gpu::Stream> stream;  // last, so it goes first: its work uses the rest
};

Transformer::Transformer(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

Transformer::~Transformer() {
  if (!parts_->last || parts_->last->done() || parts_->last->wait_for(kLastStepLimit)) return;
  if (parts_->last->done()) return;
  // The device may still write to these buffers: they stay for the process's life, reachable for leak checkers.
  static auto* const stuck = new std::vector<std::unique_ptr<Parts>>;
  stuck->push_back(std::move(parts_));
}

Result<std::unique_ptr<Transformer>> Transformer::create(gpu::Device& device,
                                                         std::shared_ptr<const ModelFile> file,
                                                         TransformerOptions options) {
  if (Result<void> ok = check(options); !ok) return ok.error();
  if (!device.host_visible()) {
    return fail(
        Errc::unsupported,
        fmt::format("device {}: steps are written by the host, which cannot see its memory", device.name()));
  }
  auto parts = std::make_unique<Parts>();
  parts->options = options;
  const KvCacheOptions cache = cache_options(*file, options);
  const auto pseudo_layers = static_cast<int>(cache.block_exits.size());
  Result<gpu::Slab> slab =
      device.budget().reserve(model::workspace_bytes(file->config(), options, pseudo_layers), gpu::Use::workspace);
  if (!slab) return slab.error();
  parts->workspace_slab = std::move(*slab);
  parts->workspace = Workspace::place(file->config(), options, pseudo_layers, parts->workspace_slab.data());
  parts->cache = std::make_shared<KvCache>(device.budget(), cache);
  Result<std::unique_ptr<gpu::Stream>> stream = device.create_stream(gpu::StreamKind::compute);
  if (!stream) return stream.error();
  parts->stream = std::move(*stream);
  parts->file = std::move(file);
  return std::unique_ptr<Transformer>(new Transformer(std::move(parts)));
}

void Transformer::adopt(GlobalWeights weights) {
  parts_->globals = std::move(weights);
}

void Transformer::adopt(int layer, LayerWeights weights) {
  assert(layer == resident_layers() && layer < config().layers);
  if (layer == resident_layers()) parts_->layers.push_back(std::move(weights));
}

void Transformer::drop_layers(int keep) {
  assert(!parts_->last || parts_->last->done());
  if (keep >= 0 && keep < resident_layers())
    parts_->layers.erase(parts_->layers.begin() + keep, parts_->layers.end());
}

int Transformer::resident_layers() const noexcept {
  return static_cast<int>(parts_->layers.size());
}
bool Transformer::has_globals() const noexcept {
  return parts_->globals.has_value();
}
const std::shared_ptr<KvCache>& Transformer::kv_cache() const noexcept {
  return parts_->cache;
}
const ModelConfig& Transformer::config() const noexcept {
  return parts_->file->config();
}
const TransformerOptions& Transformer::options() const noexcept {
  return parts_->options;
}
std::size_t Transformer::workspace_bytes() const noexcept {
  return parts_->workspace_slab.size();
}

std::size_t Transformer::weight_bytes() const noexcept {
  std::size_t bytes = 0;
  for (const LayerWeights& layer : parts_->layers) bytes += layer.slab.size();
  if (parts_->globals) {
    bytes += parts_->globals->slab.size();
    for (const ExitWeights& exit : parts_->globals->exits) {
      bytes += exit.slab.size() + (exit.block ? exit.block->slab.size() : 0);
    }
  }
  return bytes;
}

Result<gpu::Event> Transformer::start(const StepPlan& plan) {
  Parts& p = *parts_;
  if (p.last && !p.last->done()) return fail(Errc::busy, "the last step is not done");
  if (!p.globals) return fail(Errc::bad_request, "embedding and head are not loaded");
  const StepDraft::Limits limits{p.options.max_rows, p.options.max_outputs, max_sequences(p.options),
                                 resident_layers()};
  if (Result<void> ok = p.draft.check(plan, config(), *p.cache, limits); !ok) return ok.error();
  p.draft.commit();
  p.results.clear();
  const ForwardParts forward{&config(), p.cache.get(), &*p.globals, &p.layers, &p.workspace};
  ForwardProgram program(forward, plan, p.draft);
  gpu::CommandList commands = program.build();
  if (Result<void> launched = p.stream->launch(std::move(commands)); !launched) {
    p.draft.undo();
    p.outputs.clear();
    return launched.error();
  }
  p.outputs = plan.outputs;
  p.slots = program.slots();
  p.last = p.stream->record();
  return *p.last;
}

std::span<const StepResult> Transformer::results() {
  Parts& p = *parts_;
  if (p.results.size() == p.outputs.size() || !p.last || !p.last->done()) return p.results;
  for (std::size_t i = 0; i < p.outputs.size(); ++i) {
    const std::int32_t slot = p.slots[i];
    const gpu::HeadStats& stats = p.workspace.stats[slot];
    const gpu::SampleOut& sampled = p.workspace.sampled[slot];
    StepResult result;
    result.token = sampled.token;
    result.confidence = std::exp(stats.max - stats.logsumexp);
    result.logprob = sampled.logprob;
    result.nan = stats.nan;
    for (std::int32_t k = 0; k < sampled.top_count; ++k) {
      result.top_logprobs.push_back({sampled.top_ids[k], sampled.top_logprobs[k]});
    }
    if (p.outputs[i].want_logits) {
      result.logits = {p.workspace.logits + slot * config().vocab, static_cast<std::size_t>(config().vocab)};
    }
    p.results.push_back(std::move(result));
  }
  return p.results;
}

}  // namespace helios::model
