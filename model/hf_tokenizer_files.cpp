#include "model/hf_tokenizer_files.hpp"

#include <fmt/format.h>

#include <filesystem>

#include "model/byte_source.hpp"
#include "model/chat_template.hpp"

namespace helios::model {

namespace {

constexpr std::size_t kMaxConfigBytes = std::size_t{16} << 20;  // some have thousands of added tokens

/// An empty object when the file is not there.
Result<JsonObject> read_if_there(const std::string& folder, const char* name) {
  const std::string path = folder + "/" + name;
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return JsonObject();
  return JsonObject::read(path, kMaxConfigBytes);
}

/// A string, or an object with the string "content"; empty when absent.
Result<std::string> token_text(const JsonObject& json, std::string_view key) {
  const boost::json::value* value = json.find(key);
  if (value == nullptr) return std::string();
  if (const boost::json::object* object = value->if_object()) value = object->if_contains("content");
  if (value == nullptr || !value->is_string()) return json.bad(key, "a token's text");
  return std::string(value->get_string());
}

}  // namespace

Result<HuggingFaceIds> read_hf_ids(const std::string& folder, const HfConfig& config) {
  const Result<JsonObject> tokenizer = read_if_there(folder, "tokenizer_config.json");
  if (!tokenizer) return tokenizer.error();
  const Result<JsonObject> generation = read_if_there(folder, "generation_config.json");
  if (!generation) return generation.error();
  HuggingFaceIds ids;
  const Result<std::string> bos = token_text(*tokenizer, "bos_token");
  if (!bos) return bos.error();
  const Result<std::string> eos = token_text(*tokenizer, "eos_token");
  if (!eos) return eos.error();
  ids.bos_token = *bos;
  ids.eos_token = *eos;
  ids.bos = config.bos;
  ids.eos = config.eos;
  const Result<std::vector<std::int32_t>> ends = token_ids(*generation, "eos_token_id");
  if (!ends) return ends.error();
  ids.eos.insert(ids.eos.end(), ends->begin(), ends->end());
  for (const std::int32_t id : ids.eos) {
    if (id >= config.model.vocab) {
      return fail(Errc::bad_file, fmt::format("{}: eos_token_id {} is outside the vocabulary of {}", folder,
                                              id, config.model.vocab));
    }
  }
  if (tokenizer->has("add_bos_token")) {
    const Result<bool> add = tokenizer->flag_or("add_bos_token", false);
    if (!add) return add.error();
    ids.add_bos = *add;
  }
  ids.vocab_rows = static_cast<std::int32_t>(config.model.vocab);
  return ids;
}

Result<std::optional<std::string>> read_chat_template(const std::string& folder) {
  const std::string path = folder + "/chat_template.jinja";
  std::error_code ignored;
  if (std::filesystem::exists(path, ignored)) {
    Result<std::string> text = read_text(path, ChatTemplateLimits{}.template_bytes);
    if (!text) return text.error();
    return std::optional(std::move(*text));
  }
  const Result<JsonObject> config = read_if_there(folder, "tokenizer_config.json");
  if (!config) return config.error();
  const boost::json::value* value = config->find("chat_template");
  if (value == nullptr) return std::optional<std::string>();
  if (value->is_string()) return std::optional<std::string>(value->get_string());
  const auto wrong = [&] { return config->bad("chat_template", "a text, or a list of {name, template}"); };
  if (!value->is_array()) return wrong();
  const boost::json::string* first = nullptr;
  for (const boost::json::value& one : value->get_array()) {
    const boost::json::object* entry = one.if_object();
    const boost::json::value* name = entry != nullptr ? entry->if_contains("name") : nullptr;
    const boost::json::value* source = entry != nullptr ? entry->if_contains("template") : nullptr;
    if (name == nullptr || !name->is_string() || source == nullptr || !source->is_string()) return wrong();
    if (first == nullptr || name->get_string() == "default") first = &source->get_string();
    if (name->get_string() == "default") break;
  }
  if (first == nullptr) return std::optional<std::string>();
  return std::optional<std::string>(*first);
}

}  // namespace helios::model
