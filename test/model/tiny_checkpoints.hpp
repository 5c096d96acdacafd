#pragma once
// The models of test/data/tiny and what transformers computes for them.

#include <string>
#include <vector>

#include "model/safetensors.hpp"
#include "test/model/model_fixture.hpp"

namespace helios::test {

inline std::string tiny(const std::string& name) {
  return HELIOS_TEST_DATA "/tiny/" + name;
}

/// Values of a float32 or int32 tensor.
template <class T>
std::vector<T> values_of(const model::Safetensors& file, const char* name) {
  const model::SafetensorsTensor& tensor = *must(file.require(name));
  std::vector<T> values(static_cast<std::size_t>(tensor.bytes) / sizeof(T));
  must(file.read(tensor, std::as_writable_bytes(std::span(values))));
  return values;
}

struct Expected {
  std::vector<std::int32_t> ids;
  std::vector<float> logits;  // [ids, vocab], at full depth
  std::vector<float> exits;   // [layers - 1, vocab], at the last token after 1.. layers
  std::vector<float> head;    // [ids, vocab], of the exits file's exit at 1; opt only

  static Expected load(const std::string& name) {
    const auto file = must(model::Safetensors::open(tiny(name + ".expected.safetensors")));
    return {values_of<std::int32_t>(*file, "ids"), values_of<float>(*file, "logits"),
            values_of<float>(*file, "exits"),
            file->find("head") != nullptr ? values_of<float>(*file, "head") : std::vector<float>()};
  }
};

/// The model with float32 caches, as exact as the kernels are.
inline Loaded load_tiny(const std::string& path, gpu::Kernels kernels = gpu::Kernels::reference,
                        model::Quant quant = model::Quant::none, const std::string& exits = "",
                        int depth = 0) {
  const int layers = must(model::ModelFile::open(path))->config().layers;
  return Loaded::make(
      path, depth > 0 ? depth : layers,
      {.kv_type = gpu::DataType::f32, .row_type = gpu::DataType::f32, .max_rows = 32, .max_outputs = 32},
      kernels, std::size_t{16} << 20, exits, quant);
}

/// Logits of all `ids` [ids, vocab] that leave after `depth` layers.
inline std::vector<float> logits_at(Loaded& l, const std::vector<std::int32_t>& ids, int depth) {
  model::KvCache::Sequence sequence;
  const auto count = static_cast<int>(ids.size());
  must(l.transformer->kv_cache()->reserve(sequence, count, {0, depth}));
  model::StepPlan plan;
  for (int i = 0; i < count; ++i) {
    plan.rows.push_back({&sequence, i, ids[static_cast<std::size_t>(i)], 0, static_cast<std::int16_t>(depth),
                         static_cast<std::int16_t>(i)});
    plan.outputs.push_back({depth, nullptr, 0, true});
  }
  std::vector<float> logits;
  for (const model::StepResult& result : must(model::run_step(*l.transformer, plan)))
    logits.insert(logits.end(), result.logits.begin(), result.logits.end());
  return logits;
}

struct Difference {
  double largest = 0.0, rms = 0.0;
};
inline Difference difference(std::span<const float> a, std::span<const float> b) {
  REQUIRE(a.size() == b.size());
  Difference d;
  double squares = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double x = std::abs(double{a[i]} - b[i]);
    if (!(x <= d.largest)) d.largest = x;  // a NaN is the largest
    squares += x * x;
  }
  d.rms = std::sqrt(squares / static_cast<double>(a.size()));
  return d;
}

}  // namespace helios::test
