#include "benchmarks/runtime_bench_caf.hpp"

#include <caf/all.hpp>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <future>
#include <vector>

namespace helios::bench {

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

caf::actor_system_config config(int threads) {
  caf::actor_system_config made;
  made.set("scheduler.max-threads", static_cast<std::size_t>(threads));
  return made;
}

struct ClientState {
  int left = 0;
  int next = 0;
  std::promise<void>* done = nullptr;
};

caf::behavior server() {
  return {[](int n) { return n; }};
}

void ask_next(caf::stateful_actor<ClientState>* self, const caf::actor& to) {
  self->request(to, std::chrono::seconds(10), self->state.next).then([self, to](int n) {
    if (n != self->state.next) std::abort();
    ++self->state.next;
    if (--self->state.left > 0) {
      ask_next(self, to);
    } else {
      self->state.done->set_value();
    }
  });
}

caf::behavior client(caf::stateful_actor<ClientState>* self, caf::actor to, int count,
                     std::promise<void>* done) {
  self->state.left = count;
  self->state.done = done;
  return {[self, to](caf::ok_atom) { ask_next(self, to); }};
}

struct ReceiverState {
  std::vector<int> seen = std::vector<int>(16);
  int count = 0;
};

caf::behavior receiver(caf::stateful_actor<ReceiverState>* self, int expected, int window,
                       std::promise<void>* done) {
  return {[=](int sender, int number) {
    if (number != self->state.seen[static_cast<std::size_t>(sender)]++) std::abort();
    if ((number + 1) % (window / 2) == 0)
      self->send(caf::actor_cast<caf::actor>(self->current_sender()), caf::ok_atom_v);
    if (++self->state.count == expected) done->set_value();
  }};
}

struct SenderState {
  int sent = 0;
};

caf::behavior sender(caf::stateful_actor<SenderState>* self, caf::actor to, int index, int count,
                     int window) {
  const auto burst = [=](int n) {
    for (; n > 0 && self->state.sent < count; --n) self->send(to, index, self->state.sent++);
  };
  return {[=](caf::put_atom) { burst(window); }, [=](caf::ok_atom) { burst(window / 2); }};
}

}  // namespace

double caf_ping_pong_us(int count, int threads) {
  auto made = config(threads);
  caf::actor_system system(made);
  std::promise<void> done;
  const caf::actor to = system.spawn(server);
  const caf::actor from = system.spawn(client, to, count, &done);
  const auto start = Clock::now();
  caf::anon_send(from, caf::ok_atom_v);
  done.get_future().wait();
  const double seconds = seconds_since(start);
  caf::anon_send_exit(from, caf::exit_reason::user_shutdown);
  caf::anon_send_exit(to, caf::exit_reason::user_shutdown);
  return seconds * 1e6 / count;
}

double caf_rate_m(int senders, int messages, int window, int threads) {
  const int each = messages / senders;
  auto made = config(threads);
  caf::actor_system system(made);
  std::promise<void> done;
  const caf::actor to = system.spawn(receiver, each * senders, window, &done);
  std::vector<caf::actor> from;
  for (int i = 0; i < senders; ++i) from.push_back(system.spawn(sender, to, i, each, window));
  const auto start = Clock::now();
  for (const caf::actor& actor : from) caf::anon_send(actor, caf::put_atom_v);
  done.get_future().wait();
  const double seconds = seconds_since(start);
  for (const caf::actor& actor : from) caf::anon_send_exit(actor, caf::exit_reason::user_shutdown);
  caf::anon_send_exit(to, caf::exit_reason::user_shutdown);
  return each * senders / seconds / 1e6;
}

}  // namespace helios::bench
