#pragma once
// Catch2 v3 header names over Debian's Catch2 2.13. Used only where Catch2 3 is not installed.
#include <catch2/catch.hpp>
namespace Catch {
using Detail::Approx;
}
