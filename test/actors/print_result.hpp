#pragma once
// A failed REQUIRE(result) shows the error's message.

#include <catch2/catch_test_macros.hpp>
#include <string>

#include "runtime/result.hpp"

namespace Catch {

template <class T>
struct StringMaker<helios::Result<T>> {
  static std::string convert(const helios::Result<T>& result) {
    return result.has_value()
               ? "ok"
               : std::string(helios::to_string(result.error().code)) + ": " + result.error().message;
  }
};
template <>
struct StringMaker<helios::Error> {
  static std::string convert(const helios::Error& error) {
    return std::string(helios::to_string(error.code)) + ": " + error.message;
  }
};
template <>
struct StringMaker<helios::Errc> {
  static std::string convert(helios::Errc code) { return std::string(helios::to_string(code)); }
};

}  // namespace Catch
