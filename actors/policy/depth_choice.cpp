#include "actors/policy/depth_choice.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace helios::actors::policy {

Result<Policy> parse_policy(std::string_view name, Policy fallback) {
  if (name.empty()) return fallback;
  if (name == "full") return Policy::full;
  if (name == "greedy") return Policy::greedy;
  constexpr std::array<std::string_view, 4> kPlanned{"per_token", "speculative", "helios", "helios-paper"};
  if (std::find(kPlanned.begin(), kPlanned.end(), name) != kPlanned.end()) {
    return fail(Errc::unsupported,
                fmt::format("policy '{}' is not part of this version; use 'full' or 'greedy'", name));
  }
  return fail(Errc::bad_request,
              fmt::format("unknown policy '{}'; use 'full' or 'greedy'", name.substr(0, 64)));
}

std::string_view to_string(Policy policy) noexcept {
  return policy == Policy::full ? "full" : "greedy";
}

namespace {

/// The exit nearest to `wanted` that can run now; ties go deeper.
int nearest_feasible(const DepthOffer& offer, int wanted) {
  if (offer.exits.empty()) return std::clamp(wanted, 1, std::max(1, offer.feasible));
  int best = offer.depth;
  auto consider = [&](int exit) {
    if (exit > offer.feasible) return;
    const int gap = std::abs(exit - wanted), best_gap = std::abs(best - wanted);
    if (gap < best_gap || (gap == best_gap && exit > best)) best = exit;
  };
  for (const int exit : offer.exits) consider(exit);
  consider(offer.layers);
  return best;
}

}  // namespace

Result<DepthChoice> choose_depth(const DepthOffer& offer, std::optional<int> exit_layer, Policy policy,
                                 bool policy_named) {
  if (exit_layer) {
    const int wanted = *exit_layer;
    if (wanted < 1 || wanted > offer.layers) {
      return fail(Errc::bad_request, fmt::format("exit_layer {} is outside 1..{}", wanted, offer.layers));
    }
    const bool known = offer.exits.empty() || wanted == offer.layers ||
                       std::find(offer.exits.begin(), offer.exits.end(), wanted) != offer.exits.end();
    if (!known || wanted > offer.feasible) {
      return fail(Errc::no_model,
                  fmt::format("exit_layer {} {}; the nearest depth that can run now is {}", wanted,
                              known ? fmt::format("is not loaded (layers 1..{} are)", offer.feasible)
                                    : std::string("is not an exit of this model"),
                              nearest_feasible(offer, wanted)));
    }
    return DepthChoice{wanted, true};
  }
  if (policy == Policy::full) {
    if (offer.feasible < offer.layers) {
      return fail(
          Errc::no_model,
          fmt::format("policy 'full' needs all {} layers and 1..{} are loaded; use policy 'greedy' (depth "
                      "{}) or LOAD layer={}",
                      offer.layers, offer.feasible, offer.depth, offer.layers));
    }
    return DepthChoice{offer.layers, policy_named};
  }
  return DepthChoice{offer.depth, policy_named};
}

std::optional<int> next_exit(int depth, std::span<const int> exits, int layers) {
  if (depth >= layers) return std::nullopt;
  for (const int exit : exits) {
    if (exit > depth) return std::min(exit, layers);
  }
  return layers;
}

}  // namespace helios::actors::policy
