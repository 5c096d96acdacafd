#include "model/kv_cache.hpp"

#include <set>

#include "test/model/model_fixture.hpp"

namespace helios::test {

using model::KvCache;

namespace {

model::KvCacheOptions small() {
  return {.layers = 6, .block_exits = {4}, .kv_heads = 2, .head_dim = 16, .hidden = 64, .block_tokens = 16};
}

}  // namespace

TEST_CASE("KvCache: blocks by layer, all or nothing, and all of it back", "[model]") {
  auto budget = must(gpu::DeviceBudget::create(std::size_t{1} << 20));
  KvCache cache(*budget, small());
  REQUIRE(cache.block_bytes() == 16U * 2 * 16 * 2 * 2);
  {
    KvCache::Sequence sequence;
    must(cache.reserve(sequence, 17, {0, 3}));  // two blocks in three layers
    CHECK(cache.blocks_used() == 6);
    CHECK(budget->used(gpu::Use::rows) > 0);
    must(cache.reserve(sequence, 32, {0, 3}));  // they hold 32 positions
    CHECK(cache.blocks_used() == 6);
    must(cache.reserve(sequence, 33, {0, 4}));  // exit 4 has attention of its own: one pseudo-layer more
    CHECK(cache.blocks_used() == 15);
    cache.release_layers(sequence, {3, 4});
    CHECK(cache.blocks_used() == 9);
    const std::int64_t before = cache.blocks_used();
    const auto refused = cache.reserve(sequence, 100000, {0, 6});
    REQUIRE_FALSE(refused.has_value());
    CHECK(refused.error().code == Errc::out_of_memory);
    CHECK(cache.blocks_used() == before);
    CHECK_FALSE(cache.reserve(sequence, 1, {0, 7}).has_value());
  }
  CHECK(cache.blocks_used() == 0);
  CHECK(budget->used() == 0);  // slabs go back with their last block
}

TEST_CASE("KvCache: could_ever_fit keeps its word in an empty cache", "[model]") {
  auto budget = must(gpu::DeviceBudget::create(600'000));
  const auto weights = must(budget->reserve(100'000, gpu::Use::weights));
  KvCache cache(*budget, small());
  bool refused = false;
  for (int tokens = 16; tokens < 2000; tokens += 16) {
    if (!cache.could_ever_fit(tokens, 5)) {
      refused = true;
      continue;
    }
    KvCache::Sequence sequence;
    CHECK(cache.reserve(sequence, tokens, {0, 5}).has_value());
  }
  CHECK(refused);
  CHECK(cache.could_ever_fit(16, 5));
}

TEST_CASE("KvCache: moving a sequence moves its blocks, releasing empties it", "[model]") {
  auto budget = must(gpu::DeviceBudget::create(std::size_t{1} << 20));
  KvCache cache(*budget, small());
  KvCache::Sequence a, b;
  must(cache.reserve(a, 16, {0, 6}));
  must(cache.reserve(b, 16, {0, 6}));
  CHECK(cache.blocks_used() == 12);
  a = std::move(b);
  CHECK(cache.blocks_used() == 6);
  cache.release(a);
  CHECK(cache.blocks_used() == 0);
  CHECK(a.tokens().empty());
}

}  // namespace helios::test
