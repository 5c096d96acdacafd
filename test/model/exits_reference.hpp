#pragma once
// Logits of exit heads that `tools/tune_exits.py` wrote in PyTorch (its `reference` and `selftest`;
// data/exits/README.md).

#include <boost/json.hpp>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace helios::test {

/// The largest logits of one exit at some positions, largest first.
struct ExitReference {
  std::vector<std::vector<std::int32_t>> ids;
  std::vector<std::vector<float>> logits;
};

struct ReferenceSequence {
  std::vector<std::int32_t> ids;
  std::size_t first = 0;               // position of the first row of logits; they go on to the last one
  std::map<int, ExitReference> exits;  // by layers run
};

inline std::vector<ReferenceSequence> read_exits_reference(const std::string& path) {
  std::ifstream in(path);
  if (!in) throw std::runtime_error("cannot read " + path);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  std::vector<ReferenceSequence> sequences;
  const boost::json::value file = boost::json::parse(text);
  for (const auto& item : file.at("sequences").as_array()) {
    ReferenceSequence sequence;
    sequence.ids = boost::json::value_to<std::vector<std::int32_t>>(item.at("ids"));
    sequence.first = boost::json::value_to<std::size_t>(item.at("first"));
    for (const auto& [layer, exit] : item.at("exits").as_object()) {
      sequence.exits[std::stoi(std::string(layer))] = {
          boost::json::value_to<std::vector<std::vector<std::int32_t>>>(exit.at("ids")),
          boost::json::value_to<std::vector<std::vector<float>>>(exit.at("logits"))};
    }
    sequences.push_back(std::move(sequence));
  }
  return sequences;
}

}  // namespace helios::test
