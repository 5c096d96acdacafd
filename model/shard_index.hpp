#pragma once
// model.safetensors.index.json: which file of a sharded model holds which tensor.

#include <map>
#include <set>
#include <string>

#include "model/json_object.hpp"
#include "runtime/result.hpp"

namespace helios::model {

struct ShardIndex {
  static constexpr std::size_t kMaxShards = 1024;

  std::map<std::string, std::string, std::less<>> file_of;  // tensor -> file name, without a folder
  std::set<std::string> files;                              // in order of their names
};

/// Errors: bad_file (no "weight_map", a value that is no plain file name, too many files).
Result<ShardIndex> read_shard_index(const JsonObject& json);

}  // namespace helios::model
