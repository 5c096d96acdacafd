#pragma once
// Lets CHECK(result) print an error's message.

#include <catch2/catch_test_macros.hpp>
#include <string>

#include "runtime/result.hpp"

namespace Catch {

template <class T>
struct StringMaker<boost::system::result<T, helios::Error>> {
  static std::string convert(const boost::system::result<T, helios::Error>& result) {
    return result ? "ok" : std::string(to_string(result.error().code)) + ": " + result.error().message;
  }
};

}  // namespace Catch
