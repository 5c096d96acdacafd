#pragma once
#include <boost/json/object.hpp>
#include <string>
#include <vector>

#include "apps/bench_target.hpp"

namespace helios::apps {

/// Figures of one run, as `vllm bench serve` defines them. TPOT = (E2E - TTFT) / (tokens - 1), of requests
/// with two tokens or more; ITL is pooled over all gaps; failed requests count in `errors` and in nothing
/// else. prefill_tokens_per_s: prompt tokens until the last stream has its first token; decode_tokens_per_s:
/// tokens of all streams after that moment (both of closed-loop runs; 0 in open loop). token_hash: all
/// requests' hashes, in order.
boost::json::object bench_report(const std::vector<RequestRecord>& records, int streams, bool closed_loop);

/// The same for people.
std::string bench_table(const boost::json::object& report);

}  // namespace helios::apps
