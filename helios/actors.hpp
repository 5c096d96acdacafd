#pragma once
// For programs that wire the actors themselves: own executor, own device, several models, messages instead of
// calls. `helios::actors::Server::start` wires everything; its router() takes the messages of
// actors/messages.hpp.

#include "actors/messages.hpp"
#include "actors/server.hpp"
#include "gpu/host_device.hpp"
#include "runtime/actor.hpp"
#include "runtime/actor_system.hpp"
#include "runtime/metrics.hpp"
#include "runtime/sim_executor.hpp"
#include "runtime/thread_executor.hpp"
#include "runtime/trace.hpp"
