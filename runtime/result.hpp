#pragma once
// Errors as values. Every code has a sentence; a message says what, where and what to do.

#include <boost/system/result.hpp>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace helios {

enum class Errc : unsigned char {
  bad_request,        // the caller's input is wrong; nothing was done
  too_long,           // exceeds a stated limit
  busy,               // a bound is reached: retry later
  no_model,           // no such model, or no such depth
  draining,           // the server is shutting down
  cancelled,          // the caller asked for it to stop
  deadline_exceeded,  // not done in time
  dropped,            // the receiver went away without an answer
  out_of_memory,      // the device budget has no room
  io_error,           // a file or socket failed
  bad_file,           // a file's bytes are not what its format says
  unsupported,        // a valid thing that this program does not do
  device_fault,       // the device failed; sticky
  internal,           // our mistake
};

/// The code's sentence, for logs and protocol errors.
constexpr std::string_view to_string(Errc code) noexcept {
  switch (code) {
    case Errc::bad_request:
      return "bad request";
    case Errc::too_long:
      return "too long";
    case Errc::busy:
      return "busy";
    case Errc::no_model:
      return "no such model";
    case Errc::draining:
      return "draining";
    case Errc::cancelled:
      return "cancelled";
    case Errc::deadline_exceeded:
      return "deadline exceeded";
    case Errc::dropped:
      return "the receiver went away";
    case Errc::out_of_memory:
      return "out of memory";
    case Errc::io_error:
      return "input/output error";
    case Errc::bad_file:
      return "bad file";
    case Errc::unsupported:
      return "unsupported";
    case Errc::device_fault:
      return "device fault";
    case Errc::internal:
      return "internal error";
  }
  return "unknown error";
}

struct Error {
  Errc code = Errc::internal;
  std::string message;
};

/// Called by Result::value() on an error; production code checks first.
[[noreturn]] inline void throw_exception_from_error(const Error& error, const boost::source_location&) {
  throw std::runtime_error(std::string(to_string(error.code)) + ": " + error.message);
}

template <class T = void>
using Result = boost::system::result<T, Error>;

/// `return fail(Errc::bad_file, "...")` from any function that returns a Result.
inline Error fail(Errc code, std::string message) {
  return Error{code, std::move(message)};
}

}  // namespace helios
