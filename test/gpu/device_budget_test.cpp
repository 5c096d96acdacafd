#include "gpu/device_budget.hpp"

#include <catch2/catch_test_macros.hpp>
#include <vector>
#include "test/gpu/result_text.hpp"

namespace helios::gpu {

TEST_CASE("DeviceBudget: to the byte, by use, given back", "[gpu]") {
  auto budget = DeviceBudget::create(4096).value();
  CHECK(budget->total() == 4096);
  {
    Slab weights = budget->reserve(1000, Use::weights).value();
    Slab kv = budget->reserve(3072, Use::kv).value();
    CHECK(weights.size() == 1000);
    CHECK(reinterpret_cast<std::uintptr_t>(kv.data()) % 64 == 0);
    CHECK(budget->used(Use::weights) == 1024);  // rounded up to 64
    CHECK(budget->used(Use::kv) == 3072);
    CHECK(budget->free() == 0);
    const Result<Slab> refused = budget->reserve(1, Use::rows);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == Errc::out_of_memory);
    CHECK(refused.error().message.find("rows") != std::string::npos);
    Slab moved = std::move(kv);
    kv = std::move(moved);
    CHECK(budget->used(Use::kv) == 3072);
  }
  CHECK(budget->free() == 4096);
  CHECK(budget->largest_free() == 4096);
}

TEST_CASE("DeviceBudget: holes join again in any order", "[gpu]") {
  auto budget = DeviceBudget::create(64 * 5).value();
  for (const std::vector<std::size_t>& order :
       {std::vector<std::size_t>{0, 1, 2, 3, 4}, {4, 3, 2, 1, 0}, {1, 3, 0, 4, 2}, {2, 0, 4, 1, 3}}) {
    std::vector<Slab> slabs;
    for (int i = 0; i < 5; ++i) slabs.push_back(budget->reserve(64, Use::workspace).value());
    for (const std::size_t i : order) slabs[i] = Slab();
    CHECK(budget->largest_free() == 64 * 5);
  }
}

TEST_CASE("DeviceBudget: no arena, overflow, and a scripted fault", "[gpu]") {
  CHECK_FALSE(DeviceBudget::create(0));
  auto budget = DeviceBudget::create(4096).value();
  CHECK_FALSE(budget->reserve(~std::size_t{0}, Use::kv));
  budget->fail_reserve(2);
  CHECK(budget->reserve(64, Use::kv));
  CHECK_FALSE(budget->reserve(64, Use::kv));
  CHECK(budget->reserve(64, Use::kv));
}

}  // namespace helios::gpu
