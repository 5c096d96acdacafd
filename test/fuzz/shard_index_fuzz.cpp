// Any bytes as model.safetensors.index.json: refused, or plain names of files beside it. Its tensor names are
// put through the tables of names. The planted fault: a reader that lets a file's name lead elsewhere.

#include <string_view>

#include "model/hf_tensor_names.hpp"
#include "model/shard_index.hpp"
#include "test/fuzz/fuzz_support.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace helios;
  using fuzz::require;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto json = model::JsonObject::parse(text, "input");
  const auto index = json ? model::read_shard_index(*json) : Result<model::ShardIndex>(json.error());
  if (!index) {
    require(index.error().message.starts_with("input"));
    return 0;
  }
  require(!index->files.empty() && index->files.size() <= model::ShardIndex::kMaxShards);
  for (const auto& [tensor, file] : index->file_of) {
    const std::string name = fuzz::kPlantedFault ? "../" + file : file;
    require(index->files.contains(file));
    require(name.find('/') == std::string::npos && name != "." && name != "..");
    for (const char* architecture : {"llama", "opt"}) {
      const model::Architecture& table = *model::find_architecture(architecture);
      const auto gguf = model::gguf_name(table, tensor);
      if (gguf) require(model::gguf_name(table, model::hf_name(table, *gguf)) == gguf);
    }
  }
  return 0;
}
