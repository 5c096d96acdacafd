#include "protocol/generate_options.hpp"

#include <spdlog/fmt/fmt.h>

#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <set>
#include <system_error>
#include <utility>

namespace helios::protocol {

namespace {

constexpr std::int64_t kMaxInt = std::numeric_limits<int>::max();
constexpr std::int64_t kMaxLayers = std::numeric_limits<std::int16_t>::max();
constexpr int kMaxLogprobs = 20;
constexpr std::size_t kMaxStopStrings = 16;
constexpr std::size_t kMaxStopIds = 64;

/// Fills one field of the command from the option's value.
Result<void> take_int(const Option& option, std::int64_t min, std::int64_t max, int& field) {
  Result<std::int64_t> value = parse_integer(option.key, option.value, min, max);
  if (!value) return value.error();
  field = static_cast<int>(*value);
  return {};
}

Result<void> take_float(const Option& option, float min, float max, float& field) {
  Result<float> value = parse_float(option.key, option.value, min, max);
  if (!value) return value.error();
  field = *value;
  return {};
}

Result<void> take_flag(const Option& option, bool& field) {
  Result<std::int64_t> value = parse_integer(option.key, option.value, 0, 1);
  if (!value) return value.error();
  field = *value == 1;
  return {};
}

Result<void> take_seed(const Option& option, std::uint64_t& field) {
  const char* end = option.value.data() + option.value.size();
  const auto [stop, error] = std::from_chars(option.value.data(), end, field);
  if (error != std::errc() || stop != end) {
    return fail(Errc::bad_request, "seed: a number from 0 to 18446744073709551615 is needed");
  }
  return {};
}

Result<void> take_ids(const Option& option, std::vector<std::int32_t>& field) {
  std::string_view rest = option.value;
  while (field.size() < kMaxStopIds) {
    const std::size_t comma = rest.find(',');
    Result<std::int64_t> id = parse_integer(option.key, rest.substr(0, comma), 0, kMaxInt);
    if (!id) return id.error();
    field.push_back(static_cast<std::int32_t>(*id));
    if (comma == std::string_view::npos) return {};
    rest.remove_prefix(comma + 1);
  }
  return fail(Errc::bad_request, fmt::format("{}: at most {} ids", option.key, kMaxStopIds));
}

struct Text {
  std::string mode = "chat";
  std::optional<std::string> system;
};

Result<void> take(const Option& option, GenerateCommand& command, Text& text) {
  actors::GenerateRequest& request = command.request;
  model::Sampling& sampling = request.sampling;
  const std::string& key = option.key;
  if (key == "mode") {
    text.mode = option.value;
    if (text.mode == "chat" || text.mode == "raw") return {};
    return fail(Errc::bad_request, "mode: chat or raw");
  }
  if (key == "system") {
    text.system = option.value;
    return {};
  }
  if (key == "model") {
    request.model = option.value == "default" ? std::string() : option.value;
    return {};
  }
  if (key == "max_tokens") return take_int(option, 1, kMaxInt, sampling.max_tokens);
  if (key == "temperature") return take_float(option, 0, 100, sampling.temperature);
  if (key == "top_k") return take_int(option, 0, kMaxInt, sampling.top_k);
  if (key == "top_p") return take_float(option, 0, 1, sampling.top_p);
  if (key == "min_p") return take_float(option, 0, 1, sampling.min_p);
  if (key == "repetition_penalty") return take_float(option, 0.01F, 100, sampling.repetition_penalty);
  if (key == "seed") return take_seed(option, sampling.seed);
  if (key == "stop") {
    if (option.value.empty()) return fail(Errc::bad_request, "stop: an empty text stops nothing");
    if (sampling.stop.size() >= kMaxStopStrings) {
      return fail(Errc::bad_request, fmt::format("stop: at most {} of them", kMaxStopStrings));
    }
    sampling.stop.push_back(option.value);
    return {};
  }
  if (key == "stop_ids") return take_ids(option, sampling.stop_ids);
  if (key == "ignore_eos") return take_flag(option, sampling.ignore_eos);
  if (key == "ids") return take_flag(option, command.fields.ids);
  if (key == "logprobs") {
    command.fields.logprobs = true;
    if (Result<void> taken = take_int(option, 0, kMaxLogprobs, command.fields.top); !taken) return taken;
    sampling.logprobs = command.fields.top;
    return {};
  }
  if (key == "exit_layer") {
    int layer = 0;
    if (Result<void> taken = take_int(option, 1, kMaxLayers, layer); !taken) return taken;
    request.exit_layer = layer;
    return {};
  }
  if (key == "policy") {
    if (option.value.empty())
      return fail(Errc::bad_request, "policy: a name is needed, such as full or greedy");
    request.policy = option.value;
    return {};
  }
  if (key == "min_confidence") {
    float confidence = 0;
    if (Result<void> taken = take_float(option, 0, 1, confidence); !taken) return taken;
    request.min_confidence = confidence;
    return {};
  }
  return fail(Errc::bad_request, fmt::format("unknown option '{}'; docs/PROTOCOL.md lists them", key));
}

}  // namespace

Result<std::int64_t> parse_integer(std::string_view key, std::string_view text, std::int64_t min,
                                   std::int64_t max) {
  std::int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end || value < min || value > max) {
    return fail(Errc::bad_request, fmt::format("{}: a whole number from {} to {} is needed, not '{}'", key,
                                               min, max, text.substr(0, 32)));
  }
  return value;
}

Result<float> parse_float(std::string_view key, std::string_view text, float min, float max) {
  float value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end || !std::isfinite(value) || value < min || value > max) {
    return fail(Errc::bad_request, fmt::format("{}: a number from {} to {} is needed, not '{}'", key, min,
                                               max, text.substr(0, 32)));
  }
  return value;
}

Result<GenerateCommand> parse_generate(const Line& line) {
  GenerateCommand command;
  command.request.sampling.max_tokens = 256;
  command.request.sampling.temperature = 0;
  Text text;
  std::set<std::string_view> seen;
  for (const Option& option : line.options) {
    if (!seen.insert(option.key).second && option.key != "stop") {
      return fail(Errc::bad_request, fmt::format("{}: given twice", option.key));
    }
    if (!is_utf8(option.value)) return fail(Errc::bad_request, fmt::format("{}: not UTF-8", option.key));
    if (Result<void> taken = take(option, command, text); !taken) return taken.error();
  }
  std::string prompt = line.text.value_or(std::string());
  if (!is_utf8(prompt)) return fail(Errc::bad_request, "the text is not UTF-8");
  command.request.raw = text.mode == "raw";
  if (text.system && command.request.raw) return fail(Errc::bad_request, "system: only with mode=chat");
  if (text.system) {
    command.request.prompt = actors::ChatTurns{{.role = "system", .content = std::move(*text.system)},
                                               {.role = "user", .content = std::move(prompt)}};
  } else {
    command.request.prompt = std::move(prompt);
  }
  if (Result<void> valid = command.request.sampling.validate(); !valid) return valid.error();
  return command;
}

}  // namespace helios::protocol
