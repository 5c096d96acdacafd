#include "model/hf_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "model/hf_config.hpp"
#include "model/hf_tensor_names.hpp"
#include "model/hf_tokenizer_files.hpp"
#include "model/safetensors.hpp"
#include "model/shard_index.hpp"

namespace helios::model {

namespace {

constexpr std::size_t kMaxConfigBytes = std::size_t{1} << 20;

bool is_there(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(path, ignored);
}

/// Whether a file of the folder begins and ends so.
bool has_file(const std::string& folder, std::string_view begin, std::string_view end) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(begin) && name.ends_with(end)) return true;
  }
  return false;
}

/// Says what the folder is, when it is not what we read.
Error no_config(const std::string& folder) {
  const bool gguf = has_file(folder, "", ".gguf");
  return fail(Errc::io_error,
              fmt::format("{} has no config.json: {}", folder,
                          gguf ? "name the GGUF file in it instead" : "it is not the folder of a model"));
}

Error no_weights(const std::string& folder) {
  if (has_file(folder, "pytorch_model", ".bin")) {
    return fail(
        Errc::unsupported,
        fmt::format("{} has its weights as pickles (pytorch_model*.bin), which are not read: save it with "
                    "save_pretrained(..., safe_serialization=True)",
                    folder));
  }
  return fail(Errc::io_error,
              fmt::format("{} has no model.safetensors and no model.safetensors.index.json: fetch the whole "
                          "folder",
                          folder));
}

/// The architecture's table and the folder's tensors under GGUF's names.
class Weights {
 public:
  Weights(const std::string& folder, const Architecture& architecture, const ModelConfig& config,
          Checkpoint& to)
      : folder_(folder), architecture_(architecture), config_(config), to_(to) {}

  Result<void> add() {
    const std::string index_path = folder_ + "/model.safetensors.index.json";
    if (!is_there(index_path)) {
      if (!is_there(folder_ + "/model.safetensors")) return no_weights(folder_);
      return add_file("model.safetensors", nullptr);
    }
    const Result<JsonObject> json = JsonObject::read(index_path);
    if (!json) return json.error();
    const Result<ShardIndex> index = read_shard_index(*json);
    if (!index) return index.error();
    for (const std::string& file : index->files) {
      if (is_there(folder_ + "/" + file)) continue;
      return fail(Errc::io_error,
                  fmt::format("{}/{} is not here: one of the model's {} files is missing, fetch "
                              "the whole folder",
                              folder_, file, index->files.size()));
    }
    for (const std::string& file : index->files) {
      if (Result<void> ok = add_file(file, &*index); !ok) return ok;
    }
    return {};
  }

 private:
  Result<void> add_file(const std::string& name, const ShardIndex* index) {
    const std::string path = folder_ + "/" + name;
    const Result<std::shared_ptr<const Safetensors>> file = Safetensors::open(path);
    if (!file) return file.error();
    if (index != nullptr) {
      for (const auto& [tensor, in] : index->file_of) {
        if (in != name || (*file)->find(tensor) != nullptr) continue;
        return fail(Errc::bad_file,
                    fmt::format("{}: tensor {} is missing, which the index says is here: fetch "
                                "the folder again",
                                path, shown(tensor)));
      }
    }
    const Result<std::uint32_t> number = to_.add_file(path);
    if (!number) return number.error();
    for (const SafetensorsTensor& tensor : (*file)->tensors()) {
      if (Result<void> ok = add_tensor(path, tensor, *number); !ok) return ok;
    }
    return {};
  }

  Result<void> add_tensor(const std::string& path, const SafetensorsTensor& tensor, std::uint32_t file) {
    if (is_ignored_tensor(tensor.name)) return {};
    const std::optional<std::string> name = gguf_name(architecture_, tensor.name);
    if (!name || !is_of_a_layer(*name)) {
      return fail(Errc::unsupported, fmt::format("{}: no part of this {} uses tensor {}: this variant is not "
                                                 "supported",
                                                 path, architecture_.hugging_face_name, shown(tensor.name)));
    }
    if (*name == "output.weight" && config_.tied_head) return {};  // a copy of the embedding
    const std::optional<gpu::DataType> type = device_type(tensor.type);
    if (!type) {
      return fail(Errc::unsupported,
                  fmt::format("{}: tensor {} is of type {}, weights must be F32, F16 or BF16", path,
                              tensor.name, to_string(tensor.type)));
    }
    return to_.add({.name = *name,
                    .type = *type,
                    .row_count = tensor.rows(),
                    .col_count = tensor.cols(),
                    .file = file,
                    .file_offset = tensor.file_offset,
                    .bytes = tensor.bytes});
  }

  /// False for "blk.N." with an N that the configuration does not have.
  bool is_of_a_layer(std::string_view name) const {
    constexpr std::string_view kPrefix = "blk.";
    if (!name.starts_with(kPrefix)) return true;
    int layer = 0;
    name.remove_prefix(kPrefix.size());
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), layer);
    return error == std::errc{} && layer < config_.layers && (name[0] != '0' || end == name.data() + 1);
  }

  const std::string& folder_;
  const Architecture& architecture_;
  const ModelConfig& config_;
  Checkpoint& to_;
};

/// generation_config.json's sampling; nothing when it only takes the likeliest token.
Result<std::optional<Sampling>> read_suggested(const std::string& folder) {
  const std::string path = folder + "/generation_config.json";
  if (!is_there(path)) return std::optional<Sampling>();
  const Result<JsonObject> json = JsonObject::read(path, kMaxConfigBytes);
  if (!json) return json.error();
  const Result<bool> sample = json->flag_or("do_sample", false);
  const Result<double> temperature = json->number_or("temperature", 1.0);
  const Result<double> top_p = json->number_or("top_p", 1.0);
  const Result<double> min_p = json->number_or("min_p", 0.0);
  const Result<double> penalty = json->number_or("repetition_penalty", 1.0);
  const Result<std::int64_t> top_k = json->whole_or("top_k", 0, 1 << 30, 50);
  if (!sample) return sample.error();
  for (const Result<double>* number : {&temperature, &top_p, &min_p, &penalty}) {
    if (!*number) return number->error();
  }
  if (!top_k) return top_k.error();
  if (!*sample) return std::optional<Sampling>();
  Sampling sampling;
  sampling.temperature = static_cast<float>(*temperature);
  sampling.top_p = static_cast<float>(*top_p);
  sampling.min_p = static_cast<float>(*min_p);
  sampling.repetition_penalty = static_cast<float>(*penalty);
  sampling.top_k = static_cast<int>(*top_k);
  if (Result<void> valid = sampling.validate(); !valid)
    return fail(Errc::bad_file, fmt::format("{}: {}", path, valid.error().message));
  return std::optional(std::move(sampling));
}

}  // namespace

bool is_hf_folder(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_directory(path, ignored);
}

std::string folder_name(const std::string& folder) {
  std::filesystem::path whole = std::filesystem::path(folder + "/.");
  std::error_code ignored;
  if (const auto absolute = std::filesystem::absolute(whole, ignored); !ignored) whole = absolute;
  return whole.lexically_normal().parent_path().filename().string();
}

Result<OpenedModel> open_hf_model(const std::string& folder) {
  if (!is_there(folder + "/config.json")) return no_config(folder);
  const Result<JsonObject> json = JsonObject::read(folder + "/config.json", kMaxConfigBytes);
  if (!json) return json.error();
  Result<HfConfig> config = read_hf_config(*json);
  if (!config) return config.error();
  OpenedModel model;
  model.config = config->model;
  if (model.config.name.empty()) model.config.name = folder_name(folder);
  const Architecture* architecture = find_architecture(model.config.architecture);
  model.checkpoint = std::make_shared<Checkpoint>(folder);
  model.checkpoint->name_by([architecture](std::string_view name) { return hf_name(*architecture, name); });
  if (Result<void> ok = Weights(folder, *architecture, model.config, *model.checkpoint).add(); !ok)
    return ok.error();
  if (!is_there(folder + "/tokenizer.json")) {
    return fail(Errc::io_error, fmt::format("{} has no tokenizer.json: save the tokenizer with "
                                            "AutoTokenizer.from_pretrained(...).save_pretrained(...)",
                                            folder));
  }
  const Result<HuggingFaceIds> ids = read_hf_ids(folder, *config);
  if (!ids) return ids.error();
  Result<std::shared_ptr<const Tokenizer>> tokenizer =
      Tokenizer::from_tokenizer_json(folder + "/tokenizer.json", *ids);
  if (!tokenizer) return tokenizer.error();
  model.tokenizer = std::move(*tokenizer);
  Result<std::optional<std::string>> chat_template = read_chat_template(folder);
  if (!chat_template) return chat_template.error();
  model.chat_template = std::move(*chat_template);
  Result<std::optional<Sampling>> suggested = read_suggested(folder);
  if (!suggested) return suggested.error();
  model.suggested = std::move(*suggested);
  return model;
}

}  // namespace helios::model
