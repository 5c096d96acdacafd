#include "apps/bench_report.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <boost/json.hpp>

#include "apps/latency_stats.hpp"

namespace helios::apps {

namespace json = boost::json;

namespace {

double ms_between(BenchTime from, BenchTime to) {
  return std::chrono::duration<double, std::milli>(to - from).count();
}

json::object to_json(const LatencySummary& s) {
  return {{"mean", s.mean}, {"median", s.median}, {"p90", s.p90}, {"p99", s.p99}};
}

double rate(double count, double milliseconds) {
  return milliseconds > 0 ? count * 1000 / milliseconds : 0;
}

}  // namespace

json::object bench_report(const std::vector<RequestRecord>& records, int streams, bool closed_loop) {
  std::vector<double> ttft, tpot, itl, e2e;
  std::int64_t prompt_tokens = 0, completion_tokens = 0, errors = 0;
  BenchTime start = BenchTime::max(), end = BenchTime::min(), last_first = BenchTime::min();
  std::map<int, std::int64_t> exits;
  std::uint64_t hash = 14695981039346656037ULL;
  std::string first_error;
  for (const RequestRecord& r : records) {
    if (!r.error.empty() || r.token_times.empty()) {
      ++errors;
      if (first_error.empty()) first_error = r.error.empty() ? "no token came" : r.error;
      continue;
    }
    start = std::min(start, r.sent);
    end = std::max(end, r.token_times.back());
    last_first = std::max(last_first, r.token_times.front());
    prompt_tokens += r.prompt_tokens;
    completion_tokens += r.completion_tokens;
    ttft.push_back(ms_between(r.sent, r.token_times.front()));
    e2e.push_back(ms_between(r.sent, r.token_times.back()));
    if (r.completion_tokens > 1) tpot.push_back((e2e.back() - ttft.back()) / (r.completion_tokens - 1));
    for (std::size_t i = 1; i < r.token_times.size(); ++i)
      itl.push_back(ms_between(r.token_times[i - 1], r.token_times[i]));
    for (const auto& [depth, tokens] : r.exit_histogram) exits[depth] += tokens;
    hash = (hash ^ r.text_hash) * 1099511628211ULL;
  }
  double prefill = 0, decode = 0;
  const std::size_t completed = records.size() - static_cast<std::size_t>(errors);
  const double duration_ms = completed > 0 ? ms_between(start, end) : 0;
  if (closed_loop && completed > 0) {
    std::int64_t decoded = 0;
    for (const RequestRecord& r : records) {
      if (!r.error.empty()) continue;
      decoded += std::count_if(r.token_times.begin(), r.token_times.end(),
                               [&](BenchTime t) { return t > last_first; });
    }
    prefill = rate(static_cast<double>(prompt_tokens), ms_between(start, last_first));
    decode = rate(static_cast<double>(decoded), ms_between(last_first, end));
  }
  json::object histogram;
  for (const auto& [depth, tokens] : exits) histogram[std::to_string(depth)] = tokens;
  json::object report{
      {"streams", streams},
      {"completed", completed},
      {"errors", errors},
      {"prompt_tokens", prompt_tokens},
      {"completion_tokens", completion_tokens},
      {"duration_s", duration_ms / 1000},
      {"requests_per_s", rate(static_cast<double>(completed), duration_ms)},
      {"output_tokens_per_s", rate(static_cast<double>(completion_tokens), duration_ms)},
      {"total_tokens_per_s", rate(static_cast<double>(prompt_tokens + completion_tokens), duration_ms)},
      {"prefill_tokens_per_s", prefill},
      {"decode_tokens_per_s", decode},
      {"ttft_ms", to_json(summarize(ttft))},
      {"tpot_ms", to_json(summarize(tpot))},
      {"itl_ms", to_json(summarize(itl))},
      {"e2e_ms", to_json(summarize(e2e))},
      {"exit_histogram", std::move(histogram)},
      {"token_hash", fmt::format("{:016x}", hash)}};
  if (!first_error.empty()) report["first_error"] = first_error;
  return report;
}

std::string bench_table(const json::object& report) {
  std::string out = fmt::format(
      "streams {:>3}  completed {}  errors {}  prefill {:.0f} tok/s  decode {:.1f} tok/s  hash {}\n",
      report.at("streams").as_int64(), json::value_to<std::int64_t>(report.at("completed")),
      report.at("errors").as_int64(), report.at("prefill_tokens_per_s").as_double(),
      report.at("decode_tokens_per_s").as_double(), report.at("token_hash").as_string().c_str());
  if (report.contains("synthetic")) out += "  synthetic: random weights, for size and speed only\n";
  for (const char* name : {"ttft_ms", "tpot_ms", "itl_ms", "e2e_ms"}) {
    const json::object& s = report.at(name).as_object();
    out += fmt::format("  {:8} mean {:9.2f}  median {:9.2f}  p90 {:9.2f}  p99 {:9.2f}\n", name,
                       s.at("mean").as_double(), s.at("median").as_double(), s.at("p90").as_double(),
                       s.at("p99").as_double());
  }
  return out;
}

}  // namespace helios::apps
