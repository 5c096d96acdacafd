#include "protocol/reply_text.hpp"

#include <spdlog/fmt/fmt.h>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <chrono>
#include <cmath>

#include "protocol/session.hpp"

namespace helios::protocol {

namespace {

namespace json = boost::json;

constexpr int kRetryMs = 1000;

/// JSON has no NaN or infinity.
double finite(double value) {
  return std::isfinite(value) ? value : 0.0;
}

json::object model_json(const actors::ModelStats& model) {
  json::object exits;
  for (const auto& [depth, tokens] : model.exit_histogram) exits[std::to_string(depth)] = tokens;
  json::array loads;
  for (const double ms : model.layer_load_ms) loads.push_back(finite(std::round(ms * 100) / 100));
  json::object out{{"name", model.name},
                   {"layers", model.layers},
                   {"depth", model.depth},
                   {"resident", model.resident},
                   {"weight_bytes", model.weight_bytes},
                   {"kv_bytes_used", model.kv_bytes_used},
                   {"kv_bytes_total", model.kv_bytes_total},
                   {"running", model.running},
                   {"waiting", model.waiting},
                   {"steps", model.steps},
                   {"prompt_tokens", model.prompt_tokens},
                   {"completion_tokens", model.completion_tokens},
                   {"preemptions", model.preemptions},
                   {"breach_rate", finite(model.breach_rate)},
                   {"exit_histogram", std::move(exits)},
                   {"layer_load_ms", std::move(loads)},
                   {"error", model.error}};
  if (model.synthetic) out["synthetic"] = true;
  return out;
}

/// `key=` with one entry per token, separated by commas.
template <class Entry>
void append_list(std::string& text, std::string_view key, const std::vector<actors::TokenInfo>& tokens,
                 Entry entry) {
  text += fmt::format(" {}=", key);
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (i > 0) text += ',';
    text += entry(tokens[i]);
  }
}

}  // namespace

std::string end_text(const actors::Finish& finish) {
  const actors::Usage& usage = finish.usage;
  std::string exits;
  for (const auto& [depth, tokens] : usage.exit_histogram) {
    exits += fmt::format("{}{}:{}", exits.empty() ? "" : ",", depth, tokens);
  }
  const double speed = finite(finish.tokens_per_s);
  return fmt::format("{} prompt={} completion={} depth={:.1f} exits={} ttft_ms={:.0f} tok_s={:.{}f}",
                     actors::to_string(finish.reason), usage.prompt_tokens, usage.completion_tokens,
                     finite(usage.mean_depth), exits.empty() ? "-" : exits, finite(finish.ttft_ms), speed,
                     speed < 99.95 && speed > 0 ? 1 : 0);
}

std::string token_extra(const actors::TextChunk& chunk, const TokenFields& fields) {
  std::string text;
  if (chunk.tokens.empty()) return text;
  if (fields.ids) {
    append_list(text, "ids", chunk.tokens,
                [](const actors::TokenInfo& t) { return std::to_string(t.token); });
    append_list(text, "depths", chunk.tokens,
                [](const actors::TokenInfo& t) { return std::to_string(t.depth); });
  }
  if (fields.logprobs) {
    append_list(text, "logprobs", chunk.tokens,
                [](const actors::TokenInfo& t) { return fmt::format("{:.6g}", t.logprob); });
  }
  if (fields.top > 0) {
    append_list(text, "top", chunk.tokens, [](const actors::TokenInfo& t) {
      std::string entry;
      for (const actors::TopLogprob& top : t.top) {
        entry += fmt::format("{}{}:{:.6g}", entry.empty() ? "" : "/", top.token, top.logprob);
      }
      return entry;
    });
  }
  return text;
}

std::string error_text(const Error& error) {
  const std::string_view text =
      error.message.empty() ? to_string(error.code) : std::string_view(error.message);
  return error.code == Errc::busy ? fmt::format("retry_ms={} {}", kRetryMs, text) : std::string(text);
}

std::string info_json(const SessionOptions& options, bool authenticated) {
  using std::chrono::duration_cast, std::chrono::seconds;
  json::object info{{"server", "helios"},
                    {"version", options.version},
                    {"protocol", 1},
                    {"auth", !authenticated},
                    {"max_line", options.parser.line_bytes},
                    {"max_payload", options.parser.payload_bytes},
                    {"max_requests", options.live_requests},
                    {"max_unread", options.unread_bytes},
                    {"idle_s", duration_cast<seconds>(options.idle_deadline).count()},
                    {"write_s", duration_cast<seconds>(options.write_deadline).count()}};
  if (authenticated) info["models"] = json::array(options.models.begin(), options.models.end());
  return json::serialize(info);
}

std::string stats_json(const actors::Stats& stats) {
  json::array models;
  for (const actors::ModelStats& model : stats.models) models.push_back(model_json(model));
  return json::serialize(json::object{{"models", std::move(models)},
                                      {"live_requests", stats.live_requests},
                                      {"device_bytes_used", stats.device_bytes_used},
                                      {"device_bytes_total", stats.device_bytes_total},
                                      {"draining", stats.draining},
                                      {"uptime_s", finite(std::round(stats.uptime_s * 1000) / 1000)}});
}

}  // namespace helios::protocol
