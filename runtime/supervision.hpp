#pragma once
// What happens when a handler, or a child of an actor's scope, throws.

#include <chrono>
#include <functional>
#include <string>

#include "runtime/clock.hpp"

namespace helios::runtime {

/// The message whose handler threw is lost, and an ask in it answered with dropped; queued messages stay for
/// the next incarnation under `restart`, and are answered with dropped under `stop` and `escalate`.
struct Supervision {
  enum class Policy : unsigned char {
    restart,   // build the actor anew from its arguments, after a back-off
    stop,      // stop this actor
    escalate,  // stop the whole system
  };
  Policy policy = Policy::stop;
  int restarts_max = 5;  // within restart_window; one more stops the actor
  Duration restart_window = std::chrono::seconds(60);
  Duration backoff_first = std::chrono::milliseconds(10);  // doubles with each restart in the window
  Duration backoff_max = std::chrono::seconds(2);

  static Supervision restarting() { return Supervision{.policy = Policy::restart}; }
  static Supervision escalating() { return Supervision{.policy = Policy::escalate}; }
};

/// For ActorSystem's failure hook.
struct ActorFailure {
  std::string actor;
  std::string message;  // what() of the exception
  Supervision::Policy policy = Supervision::Policy::stop;
  int restarts = 0;  // in the window, this one included
};
using FailureHook = std::function<void(const ActorFailure&)>;

}  // namespace helios::runtime
