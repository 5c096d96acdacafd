#include "model/shard_index.hpp"

#include <fmt/format.h>

namespace helios::model {

namespace {

/// A name beside the index: one that cannot lead out of its folder.
bool is_plain(std::string_view name) {
  return name.size() <= 255 && name.ends_with(".safetensors") && !name.starts_with('.') &&
         name.find_first_of("/\\") == std::string_view::npos && name.find('\0') == std::string_view::npos;
}

}  // namespace

Result<ShardIndex> read_shard_index(const JsonObject& json) {
  const boost::json::value* map = json.find("weight_map");
  if (map == nullptr || !map->is_object() || map->get_object().empty()) {
    return json.bad("weight_map", "an object of tensor names and file names");
  }
  ShardIndex index;
  for (const auto& [tensor, file] : map->get_object()) {
    const boost::json::string* name = file.if_string();
    if (name == nullptr || !is_plain(*name)) {
      return fail(
          Errc::bad_file,
          fmt::format("{}: tensor {} is in {}, which is no name of a *.safetensors file beside the index",
                      json.label(), shown(tensor), shown(boost::json::serialize(file))));
    }
    index.file_of.emplace(std::string(tensor), std::string(*name));
    index.files.emplace(*name);
    if (index.files.size() > ShardIndex::kMaxShards) {
      return fail(Errc::bad_file,
                  fmt::format("{}: more than {} files", json.label(), ShardIndex::kMaxShards));
    }
  }
  return index;
}

}  // namespace helios::model
