#pragma once
// Which depth a request runs at, and which depth comes next.

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "runtime/result.hpp"

namespace helios::actors::policy {

enum class Policy : unsigned char { full, greedy };

/// "full", "greedy" or "" (the fallback). Others are refused by name: unsupported for the ones that are
/// planned, bad_request for unknown words.
Result<Policy> parse_policy(std::string_view name, Policy fallback);
std::string_view to_string(Policy policy) noexcept;

/// What the model offers at the moment; depths count layers run.
struct DepthOffer {
  int layers = 0;              // L
  int depth = 0;               // where unpinned tokens leave
  int feasible = 0;            // the deepest depth that is resident or being loaded at start
  std::span<const int> exits;  // of the exits file, ascending; empty = any layer through the shared head
};

struct DepthChoice {
  int depth = 0;
  bool pinned = false;  // stays at this depth
};

/// exit_layer named: exactly that one, pinned. Policy `full`: L. Policy `greedy`: the offer's depth, and it
/// follows. Errors: no_model with the nearest feasible depth in the message.
Result<DepthChoice> choose_depth(const DepthOffer& offer, std::optional<int> exit_layer, Policy policy,
                                 bool policy_named);

/// The shallowest exit deeper than `depth`; L after the last one; nothing at L.
std::optional<int> next_exit(int depth, std::span<const int> exits, int layers);

}  // namespace helios::actors::policy
