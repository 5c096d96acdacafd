#include "actors/token_stream.hpp"

#include <catch2/catch_test_macros.hpp>
#include <thread>

#include "runtime/sim_executor.hpp"
#include "runtime/sync_wait.hpp"
#include "runtime/thread_executor.hpp"

namespace helios::actors {
namespace {

using namespace std::chrono_literals;

TextChunk chunk(std::string text, std::uint64_t seq) {
  TextChunk c;
  c.text = std::move(text);
  c.seq = seq;
  return c;
}

runtime::Task<std::vector<StreamEvent>> read_all(std::shared_ptr<TokenStream> stream) {
  std::vector<StreamEvent> events;
  while (auto event = co_await stream->next()) events.push_back(std::move(*event));
  co_return events;
}

TEST_CASE("TokenStream: chunks in order, one Finish, then nothing", "[actors]") {
  runtime::SimExecutor sim(1);
  auto stream = TokenStream::create();
  TextChunk a = chunk("a", 1), b = chunk("b", 2);
  CHECK(stream->try_write(a));
  CHECK(stream->try_write(b));
  CHECK(stream->finish(Finish{.reason = FinishReason::stop}, chunk("c", 3)));
  CHECK_FALSE(stream->finish(Finish{.reason = FinishReason::error}));
  const auto events = runtime::sync_wait(sim, read_all(stream));
  REQUIRE(events.size() == 4);
  CHECK(std::get<TextChunk>(events[0]).text == "a");
  CHECK(std::get<TextChunk>(events[1]).text == "b");
  CHECK(std::get<TextChunk>(events[2]).text == "c");
  CHECK(std::get<Finish>(events[3]).reason == FinishReason::stop);
  CHECK(stream->finished());
  CHECK(stream->buffered_bytes() == 0);
  CHECK_FALSE(stream->try_next());
}

TEST_CASE("TokenStream: a full stream refuses and leaves the chunk as it was", "[actors]") {
  auto stream = TokenStream::create(200);
  TextChunk first = chunk(std::string(1000, 'x'), 1);  // an empty stream takes anything
  REQUIRE(stream->try_write(first));
  TextChunk second = chunk("y", 2);
  CHECK_FALSE(stream->try_write(second));
  CHECK(second.text == "y");
  REQUIRE(stream->try_next());
  CHECK(stream->try_write(second));
}

TEST_CASE("TokenStream: abandoned, it takes everything and keeps nothing", "[actors]") {
  auto stream = TokenStream::create(200);
  TextChunk first = chunk("x", 1);
  REQUIRE(stream->try_write(first));
  stream->abandon();
  CHECK(stream->abandoned());
  CHECK(stream->buffered_bytes() == 0);
  for (std::uint64_t i = 0; i < 100; ++i) {
    TextChunk more = chunk(std::string(100, 'x'), i);
    CHECK(stream->try_write(more));
  }
  CHECK(stream->buffered_bytes() == 0);
}

TEST_CASE("TokenStream: a plain thread reads what another writes", "[actors]") {
  auto stream = TokenStream::create();
  std::thread writer([stream] {
    for (std::uint64_t i = 1; i <= 1000; ++i) {
      TextChunk c = chunk("t", i);
      while (!stream->try_write(c)) std::this_thread::yield();
    }
    stream->finish(Finish{.reason = FinishReason::length});
  });
  std::uint64_t next = 1;
  bool ended = false;
  while (!ended) {
    auto event = stream->wait_next(5s);
    REQUIRE(event);
    if (auto* text = std::get_if<TextChunk>(&*event)) {
      REQUIRE(text->seq == next++);
    } else {
      ended = true;
    }
  }
  writer.join();
  CHECK(next == 1001);
  CHECK_FALSE(stream->wait_next(1ms));
}

TEST_CASE("TokenStream: a waiting coroutine wakes on its own strand", "[actors]") {
  runtime::SimExecutor sim(3);
  auto stream = TokenStream::create();
  sim.post_at(sim.now() + 5ms, [stream] {
    TextChunk c = chunk("late", 1);
    stream->try_write(c);
  });
  sim.post_at(sim.now() + 9ms, [stream] { stream->finish(Finish{.reason = FinishReason::stop}); });
  const auto start = sim.now();
  CHECK(runtime::sync_wait(sim, read_all(stream)).size() == 2);
  CHECK(sim.now() - start == 9ms);
}

}  // namespace
}  // namespace helios::actors
