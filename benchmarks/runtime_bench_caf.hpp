#pragma once
// CAF's side of runtime_bench; its headers stay in the .cpp.

namespace helios::bench {

/// Microseconds for one request and its answer.
double caf_ping_pong_us(int count, int threads);
/// Million messages a second, all senders together.
double caf_rate_m(int senders, int messages, int window, int threads);

}  // namespace helios::bench
