#include "apps/prompts_file.hpp"

#include <spdlog/fmt/fmt.h>

#include <boost/json.hpp>
#include <fstream>

namespace helios::apps {

namespace json = boost::json;

Result<std::vector<Prompt>> read_prompts(const std::string& path, bool raw) {
  std::ifstream file(path);
  if (!file) return fail(Errc::io_error, fmt::format("cannot read the prompts file {}", path));
  std::vector<Prompt> prompts;
  std::string line;
  for (std::size_t number = 1; std::getline(file, line); ++number) {
    if (line.empty()) continue;
    boost::system::error_code code;
    const json::value value = json::parse(line, code);
    const json::object* object = code ? nullptr : value.if_object();
    const json::value* text = object ? object->if_contains("prompt") : nullptr;
    if (text == nullptr || !text->is_string()) {
      return fail(Errc::bad_request,
                  fmt::format("{}:{}: not a JSON object with a string \"prompt\"", path, number));
    }
    const json::value* id = object->if_contains("id");
    std::string name = id == nullptr     ? std::to_string(number)
                       : id->is_string() ? std::string(id->as_string())
                                         : json::serialize(*id);
    const json::value* own = object->if_contains("raw");
    if (own != nullptr && !own->is_bool()) {
      return fail(Errc::bad_request, fmt::format("{}:{}: \"raw\" is true or false", path, number));
    }
    prompts.push_back(
        {std::move(name), std::string(text->as_string()), own != nullptr ? own->as_bool() : raw});
  }
  return prompts;
}

}  // namespace helios::apps
