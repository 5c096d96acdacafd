#pragma once
#include <csignal>

namespace helios::apps {

/// SIGINT and SIGTERM, taken by waiting, never by a handler. Construct before any thread starts, so that all
/// threads inherit the mask.
class StopSignals {
 public:
  StopSignals();
  void wait() const;  // returns at the next of the two

 private:
  sigset_t set_{};
};

}  // namespace helios::apps
