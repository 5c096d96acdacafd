#include "protocol/session.hpp"

#include <catch2/catch_test_macros.hpp>
#include <deque>
#include <random>

#include "runtime/sim_executor.hpp"
#include "test/protocol/scripted_router.hpp"

using namespace helios;
using namespace helios::protocol;
using namespace std::chrono_literals;
using actors::FinishReason;
using test::finish_of;
using test::write_text;

namespace {

/// A peer in the simulation: takes what is written, at once or when the test says so.
class TestSink final : public ByteSink {
 public:
  void start_write(std::string bytes) override {
    CHECK_FALSE(busy);  // one write at a time
    CHECK_FALSE(closed);
    sent += bytes;
    busy = true;
    if (reads) take();
  }
  void close(bool was_reset) override {
    CHECK_FALSE(closed);
    closed = true;
    reset = was_reset;
  }
  void done() override {
    CHECK(closed);
    CHECK_FALSE(is_done);
    is_done = true;
  }
  void take() {
    session->strand().post([s = session] { s->written(); });
    busy = false;
  }

  std::shared_ptr<Session> session;
  std::string sent;
  bool reads = true, busy = false, closed = false, reset = false, is_done = false;
};

/// One session over a scripted router, in virtual time.
struct World {
  explicit World(SessionOptions options = {}, std::uint64_t seed = 1) : executor(seed) {
    auto router = system.spawn<test::ScriptedRouter>({.name = "router"}, script);
    options.models = {"smol"};
    session = std::make_shared<Session>(std::move(options), router, executor, sink, "peer:1");
    sink.session = session;
    call([](Session& s) { s.start(); });
    greeting = take();
  }
  ~World() {
    if (!sink.is_done) {
      script->hold_submits = false;
      call([](Session& s) { s.stop(); });
      CHECK(sink.is_done);
    }
    sink.session.reset();
    session.reset();
    executor.run_ready();
    system.stop();
  }

  template <class Call>
  void call(Call what) {
    session->strand().post([what, s = session] { what(*s); });
    executor.run_ready();
  }
  /// The client sends bytes; the answer so far.
  std::string send(std::string bytes) {
    call([bytes](Session& s) { s.received(bytes); });
    return take();
  }
  std::string take() {
    executor.run_ready();
    return std::exchange(sink.sent, {});
  }
  std::shared_ptr<actors::TokenStream> stream(std::size_t index) { return script->request(index).stream; }

  runtime::SimExecutor executor;
  std::shared_ptr<test::Script> script = std::make_shared<test::Script>();
  runtime::ActorSystem system{executor};
  TestSink sink;
  std::shared_ptr<Session> session;
  std::string greeting;
};

}  // namespace

TEST_CASE("Session: one chat, spelt as scripts rely on", "[protocol]") {
  World world;
  CHECK(world.greeting.starts_with(
      "INFO {\"server\":\"helios\",\"version\":\"0.1.0\",\"protocol\":1,\"auth\":false"));
  CHECK(world.greeting.ends_with("\"models\":[\"smol\"]}\r\n"));
  CHECK(world.send("GEN t1 22 mode=chat max_tokens=16 temperature=0\r\nTell me about the sea.\r\n") ==
        "ACK t1\r\n");
  const test::Script::Request request = world.script->request(0);
  CHECK(std::get<actors::PromptText>(request.request.prompt) == "Tell me about the sea.");
  CHECK(request.request.sampling.max_tokens == 16);
  CHECK_FALSE(request.request.raw);
  write_text(request.stream, "The sea ");
  CHECK(world.take() == "TOK t1 1 8\r\nThe sea \r\n");
  write_text(request.stream, "is\n");
  request.stream->finish(finish_of(FinishReason::length));
  CHECK(world.take() ==
        "TOK t1 2 3\r\nis\n\r\nEND t1 length prompt=31 completion=16 depth=30.0 exits=30:16 ttft_ms=41 "
        "tok_s=198\r\n");
  CHECK(world.script->cancels().empty());
}

TEST_CASE("Session: GEN options reach the request", "[protocol]") {
  World world;
  world.send(
      "GEN t1 \"a b\" mode=raw model=m temperature=0.5 top_k=3 top_p=0.9 min_p=0.1 repetition_penalty=1.1 "
      "seed=7 "
      "stop=\\n\\n stop=\"x y\" stop_ids=5,6 ignore_eos=1 exit_layer=18 policy=greedy min_confidence=0.25 "
      "logprobs=2\n");
  const actors::GenerateRequest request = world.script->request(0).request;
  CHECK(std::get<actors::PromptText>(request.prompt) == "a b");
  CHECK(request.raw);
  CHECK(request.model == "m");
  CHECK(request.exit_layer == 18);
  CHECK(request.policy == "greedy");
  CHECK(request.min_confidence == 0.25F);
  CHECK(request.sampling.top_k == 3);
  CHECK(request.sampling.seed == 7);
  CHECK(request.sampling.stop == std::vector<std::string>{"\n\n", "x y"});
  CHECK(request.sampling.stop_ids == std::vector<std::int32_t>{5, 6});
  CHECK(request.sampling.ignore_eos);
  CHECK(request.sampling.logprobs == 2);
  world.send("GEN t2 \"hi\" system=\"Be brief.\" model=default\n");
  const auto turns = std::get<actors::ChatTurns>(world.script->request(1).request.prompt);
  REQUIRE(turns.size() == 2);
  CHECK(turns[0].role == "system");
  CHECK(turns[1].content == "hi");
  CHECK(world.script->request(1).request.model.empty());
}

TEST_CASE("Session: bad options are refused by name, the connection goes on", "[protocol]") {
  World world;
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"colour=red", "colour"},
      {"max_tokens=0", "max_tokens"},
      {"max_tokens=-1", "max_tokens"},
      {"max_tokens=1e3", "max_tokens"},
      {"temperature=nan", "temperature"},
      {"temperature=inf", "temperature"},
      {"temperature=", "temperature"},
      {"top_p=1.5", "top_p"},
      {"min_p=-0.1", "min_p"},
      {"seed=-1", "seed"},
      {"seed=99999999999999999999", "seed"},
      {"stop=", "stop"},
      {"stop_ids=1,x", "stop_ids"},
      {"ignore_eos=yes", "ignore_eos"},
      {"logprobs=21", "logprobs"},
      {"exit_layer=0", "exit_layer"},
      {"min_confidence=2", "min_confidence"},
      {"mode=poem", "mode"},
      {"seed=1 seed=1", "seed"},
      {"stop=\\xff", "stop"},
      {"mode=raw system=x", "system"},
      {"repetition_penalty=0", "repetition_penalty"},
  };
  for (const auto& [options, name] : cases) {
    const std::string answer = world.send("GEN t1 \"x\" " + options + "\n");
    CHECK(answer.starts_with("ERR t1 BADREQ "));
    CHECK(answer.find(name) != std::string::npos);
  }
  CHECK(world.send("GEN t1 2\n\xff\xfe\n").starts_with("ERR t1 BADREQ the text is not UTF-8"));
  CHECK(world.send("GEN bad/tag \"x\"\n").starts_with("ERR - BADREQ "));
  CHECK(world.script->request_count() == 0);
  CHECK(world.send("PING still here\n") == "PONG still here\r\n");
}

TEST_CASE("Session: ids, depths and logprobs on TOK lines when asked for", "[protocol]") {
  World world;
  world.send("GEN a \"x\" ids=1 logprobs=2\n");
  world.send("GEN b \"x\"\n");
  const std::vector<actors::TokenInfo> tokens = {
      {.token = 5, .logprob = -0.5F, .depth = 30, .top = {{5, -0.5F}, {9, -1.25F}}},
      {.token = 7, .logprob = -2, .depth = 18, .top = {{1, -0.125F}}}};
  write_text(world.stream(0), "hi", tokens);
  write_text(world.stream(1), "hi", tokens);
  const std::string sent = world.take();
  CHECK(sent.find("TOK a 1 2 ids=5,7 depths=30,18 logprobs=-0.5,-2 top=5:-0.5/9:-1.25,1:-0.125\r\nhi\r\n") !=
        std::string::npos);
  CHECK(sent.find("TOK b 1 2\r\nhi\r\n") != std::string::npos);
}

TEST_CASE("Session: a refusal and a failure each end the request once", "[protocol]") {
  World world;
  world.script->refuse = Error{Errc::too_long, "the prompt has 9000 tokens, the model 8192"};
  CHECK(world.send("GEN t1 \"x\"\n") == "ERR t1 TOOLONG the prompt has 9000 tokens, the model 8192\r\n");
  world.script->refuse = Error{Errc::busy, "256 requests wait"};
  CHECK(world.send("GEN t1 \"x\"\n") == "ERR t1 BUSY retry_ms=1000 256 requests wait\r\n");
  world.script->refuse.reset();
  CHECK(world.send("GEN t1 \"x\"\n") == "ACK t1\r\n");
  write_text(world.stream(0), "par");
  actors::Finish finish = finish_of(FinishReason::error);
  finish.error = Error{Errc::device_fault, "NaN\nin row 3"};
  world.stream(0)->finish(finish);
  CHECK(world.take() == "TOK t1 1 3\r\npar\r\nERR t1 INTERNAL NaN in row 3\r\n");
  CHECK(world.session->idle());
}

TEST_CASE("Session: tags are unique among unfinished requests and free afterwards", "[protocol]") {
  World world;
  world.send("GEN t1 \"x\"\n");
  CHECK(world.send("GEN t1 \"y\"\n") == "ERR - BADREQ tag t1 is in use\r\n");
  CHECK(world.send("LOAD t1 layer=3\n") == "ERR - BADREQ tag t1 is in use\r\n");
  world.stream(0)->finish(finish_of(FinishReason::stop));
  CHECK(world.take().starts_with("END t1 stop "));
  CHECK(world.send("GEN t1 \"z\"\n") == "ACK t1\r\n");
  CHECK(world.script->request_count() == 2);
}

TEST_CASE("Session: CANCEL is answered by the stream's own END, exactly one cancel goes out", "[protocol]") {
  World world;
  world.send("GEN t1 \"x\"\n");
  world.script->finish_on_cancel = false;
  CHECK(world.send("CANCEL t1\nCANCEL t1\n").empty());
  CHECK(world.script->cancels() == std::vector<actors::RequestId>{1});
  CHECK(world.send("GEN t1 \"x\"\n") == "ERR - BADREQ tag t1 is in use\r\n");  // until the host has confirmed
  world.stream(0)->finish(finish_of(FinishReason::cancelled, 31, 0));
  CHECK(world.take().starts_with("END t1 cancelled prompt=31 completion=0 "));
  CHECK(world.send("CANCEL t1\n") == "OK t1 not-running\r\n");
  CHECK(world.send("CANCEL\n").starts_with("ERR - BADREQ "));
}

TEST_CASE("Session: CANCEL before admission cancels when the id is known", "[protocol]") {
  World world;
  world.script->hold_submits = true;
  world.send("GEN t1 \"x\"\n");
  world.send("CANCEL t1\n");
  CHECK(world.script->cancels().empty());
  world.script->held.at(0).send(actors::Accepted{.id = 1, .prompt_tokens = 3});
  CHECK(world.take().starts_with("ACK t1\r\nEND t1 cancelled "));
  CHECK(world.script->cancels() == std::vector<actors::RequestId>{1});
}

TEST_CASE("Session: LOAD, STATS, INFO", "[protocol]") {
  World world;
  CHECK(world.send("LOAD t2 model=default layer=30\n") == "OK t2 resident=1-30\r\n");
  CHECK(world.script->depths == std::vector<std::pair<std::string, int>>{{"", 30}});
  world.script->refuse = Error{Errc::bad_request, "the model has 30 layers"};
  CHECK(world.send("LOAD t2 layer=31\n") == "ERR t2 BADREQ the model has 30 layers\r\n");
  for (const std::string bad :
       {"LOAD t2\n", "LOAD t2 layer=x\n", "LOAD t2 layer=1 layer=2\n", "LOAD t2 depth=1\n"}) {
    CHECK(world.send(bad).starts_with("ERR t2 BADREQ "));
  }
  actors::ModelStats model;
  model.name = "smol\n";
  model.layers = 30;
  model.exit_histogram = {{18, 5}};
  model.layer_load_ms = {1.25};
  world.script->stats.models = {model};
  const std::string stats = world.send("STATS s1\n");
  CHECK(stats.starts_with("STATS s1 {\"models\":[{\"name\":\"smol\\n\",\"layers\":30,"));
  CHECK(stats.find("\"exit_histogram\":{\"18\":5}") != std::string::npos);
  CHECK(stats.find('\n') == stats.size() - 1);
  CHECK(world.send("STATS\n").starts_with("STATS - {"));
  CHECK(world.send("INFO\n") == world.greeting);
}

TEST_CASE("Session: garbage and unknown verbs keep the connection, a bad counted frame does not",
          "[protocol]") {
  World world;
  CHECK(world.send("FROBNICATE x\n").starts_with("ERR - UNKNOWN no verb 'FROBNICATE'"));
  CHECK(world.send("\x01\xff\x02\n").starts_with("ERR - BADREQ "));
  CHECK(world.send("PING\n") == "PONG\r\n");
  world.send("GEN t1 \"x\"\n");
  const std::string answer = world.send("GEN t2 3\nabcdef\n");
  CHECK(answer.starts_with("ERR - BADREQ no line end after a payload of 3 bytes"));
  CHECK(answer.ends_with("; closing\r\n"));
  CHECK(world.sink.closed);
  CHECK_FALSE(world.sink.reset);
  CHECK(world.script->cancels() == std::vector<actors::RequestId>{1});
  CHECK(world.sink.is_done);
}

TEST_CASE("Session: faulty lines in a row end the connection, a good one between starts anew", "[protocol]") {
  World world(SessionOptions{.faulty_lines = 3});
  world.send("X\nX\nPING\nX\nX\n");
  CHECK_FALSE(world.sink.closed);
  CHECK(world.send("X\n").ends_with("ERR - BADREQ 3 faulty lines in a row; closing\r\n"));
  CHECK(world.sink.closed);
}

TEST_CASE("Session: HTTP is cut off unanswered", "[protocol]") {
  World world;
  CHECK(world.send("POST / HTTP/1.1\r\nHost: x\r\n\r\nGEN t1 \"x\"\n").empty());
  CHECK(world.sink.closed);
  CHECK(world.sink.reset);
  CHECK(world.script->request_count() == 0);
}

TEST_CASE("Session: AUTH first, with bounded tries and a deadline", "[protocol]") {
  SessionOptions options;
  options.keys = {"secret", "other=key"};
  SECTION("nothing runs before it") {
    World world(options);
    CHECK(world.greeting.find("\"auth\":true") != std::string::npos);
    CHECK(world.greeting.find("smol") == std::string::npos);
    CHECK(world.send("GEN t1 \"x\"\n") == "ERR t1 AUTH send AUTH key first\r\n");
    CHECK(world.send("STATS\n") == "ERR - AUTH send AUTH key first\r\n");
    CHECK(world.send("PING\n") == "PONG\r\n");
    CHECK(world.send("AUTH secre\n") == "ERR - AUTH wrong key, 2 tries left\r\n");
    CHECK(world.send("AUTH other=key\n") == "OK - authenticated\r\n");
    CHECK(world.send("GEN t1 1\nx\n") == "ACK t1\r\n");
    CHECK(world.send("INFO\n").find("smol") != std::string::npos);
  }
  SECTION("a payload before it is refused unread") {
    World world(options);
    CHECK(world.send("GEN t1 1000000\n") == "ERR - AUTH send AUTH before GEN; closing\r\n");
  }
  SECTION("three wrong keys") {
    World world(options);
    world.send("AUTH a\nAUTH\n");
    CHECK(world.send("AUTH c\n") == "ERR - AUTH wrong key, too often; closing\r\n");
    CHECK(world.sink.closed);
  }
  SECTION("no key in time") {
    World world(options);
    world.executor.run_for(9s);
    CHECK_FALSE(world.sink.closed);
    world.executor.run_for(2s);
    CHECK(world.take() == "ERR - AUTH no key within 10 s; closing\r\n");
    CHECK(world.sink.closed);
  }
  CHECK(key_matches({"secret"}, "secret"));
  for (const std::string_view wrong : {"", "secret ", "Secret", "secretsecret"})
    CHECK_FALSE(key_matches({"secret"}, wrong));
  CHECK_FALSE(key_matches({"secret"}, std::string_view("secret\0", 7)));
  CHECK_FALSE(key_matches({}, ""));
}

TEST_CASE("Session: deadlines for a line, a payload and silence", "[protocol]") {
  SECTION("a line that drips") {
    World world;
    for (int i = 0; i < 4; ++i) {
      world.send("P");
      world.executor.run_for(9s);
    }
    CHECK(world.take() == "ERR - TIMEOUT the rest of a frame did not come within 30 s; closing\r\n");
  }
  SECTION("a payload that stops") {
    World world;
    world.send("GEN t 9\nabc");
    world.executor.run_for(29s);
    world.send("d");
    world.executor.run_for(29s);
    CHECK_FALSE(world.sink.closed);
    world.executor.run_for(2s);
    CHECK(world.sink.closed);
  }
  SECTION("silence, but not while a request runs") {
    World world;
    world.send("GEN t \"x\"\n");
    world.executor.run_for(20min);
    CHECK_FALSE(world.sink.closed);
    world.stream(0)->finish(finish_of(FinishReason::stop));
    world.executor.run_for(9min);
    CHECK_FALSE(world.sink.closed);
    world.executor.run_for(2min);
    CHECK(world.sink.sent.ends_with("ERR - TIMEOUT idle for 600 s; closing\r\n"));
    CHECK(world.sink.closed);
  }
}

TEST_CASE("Session: half-close lets running streams finish, then closes", "[protocol]") {
  World world;
  world.send("GEN t1 \"x\"\nGEN t2 1\ny");  // the last line end is missing
  world.call([](Session& s) { s.input_ended(); });
  CHECK(world.take().find("ACK t2\r\n") != std::string::npos);
  CHECK_FALSE(world.sink.closed);
  write_text(world.stream(0), "a");
  world.stream(0)->finish(finish_of(FinishReason::stop));
  CHECK(world.take().find("END t1 stop") != std::string::npos);
  CHECK_FALSE(world.sink.closed);
  world.stream(1)->finish(finish_of(FinishReason::stop));
  CHECK(world.take().starts_with("END t2 stop"));
  CHECK(world.sink.closed);
  CHECK_FALSE(world.sink.reset);
  CHECK(world.sink.is_done);
  CHECK(world.script->cancels().empty());
}

TEST_CASE("Session: QUIT finishes what runs, says bye, ignores what follows", "[protocol]") {
  World world;
  world.send("GEN t1 \"x\"\nQUIT\nPING\n");
  world.stream(0)->finish(finish_of(FinishReason::stop));
  const std::string answer = world.take();
  CHECK(answer.ends_with("OK - bye\r\n"));
  CHECK(answer.find("PONG") == std::string::npos);
  CHECK(world.sink.closed);
}

TEST_CASE("Session: a disconnect cancels every request, also one not yet admitted", "[protocol]") {
  World world;
  world.send("GEN t1 \"x\"\n");
  world.script->hold_submits = true;
  world.send("GEN t2 \"x\"\n");
  world.script->finish_on_cancel = false;
  world.call([](Session& s) { s.disconnected(); });
  CHECK(world.sink.closed);
  CHECK(world.sink.reset);
  CHECK(world.script->cancels() == std::vector<actors::RequestId>{1});
  CHECK_FALSE(world.sink.is_done);  // not before the host has confirmed
  world.script->held.at(0).send(actors::Accepted{.id = 2, .prompt_tokens = 3});
  world.executor.run_ready();
  CHECK(world.script->cancels() == std::vector<actors::RequestId>{1, 2});
  write_text(world.stream(0), "late");
  world.stream(0)->finish(finish_of(FinishReason::cancelled));
  world.stream(1)->finish(finish_of(FinishReason::cancelled));
  CHECK(world.take().empty());
  CHECK(world.sink.is_done);
}

TEST_CASE("Session: admission that never comes ends by its deadline and leaves no orphan", "[protocol]") {
  World world;
  world.script->hold_submits = true;
  world.send("GEN t1 \"x\"\n");
  world.executor.run_for(31s);
  CHECK(world.take().starts_with("ERR t1 TIMEOUT "));
  CHECK(world.stream(0)->abandoned());
}

TEST_CASE("Session: a slow reader is bounded, slows nobody, and is closed", "[protocol]") {
  SessionOptions options;
  options.unread_bytes = 64 * 1024;
  options.stream_bytes = 32 * 1024;
  World world(options);
  world.send("GEN t1 \"x\"\n");
  world.sink.reads = false;
  const std::string text(1000, 'x');
  std::size_t accepted = 0;
  for (int i = 0; i < 1000; ++i) {
    actors::TextChunk chunk;
    chunk.text = text;
    if (world.stream(0)->try_write(chunk)) accepted += text.size();
    world.executor.run_ready();
  }
  // What is under way, the writer's share, the stream's own bound: not the megabyte.
  CHECK(accepted < 300 * 1024);
  CHECK(accepted > 64 * 1024);
  SECTION("it reads on: every byte comes, in order") {
    world.sink.reads = true;
    world.sink.take();
    world.executor.run_ready();
    world.stream(0)->finish(finish_of(FinishReason::stop));
    const std::string sent = world.take();
    CHECK(static_cast<std::size_t>(std::count(sent.begin(), sent.end(), 'x')) ==
          accepted + 1);  // and "exits="
    CHECK(sent.find("TOK t1 " + std::to_string(accepted / text.size()) + " 1000\r\n") != std::string::npos);
  }
  SECTION("it does not: its requests are cancelled") {
    world.executor.run_for(11s);
    CHECK(world.sink.closed);
    CHECK(world.sink.reset);
    CHECK(world.script->cancels() == std::vector<actors::RequestId>{1});
    CHECK(world.sink.is_done);
  }
}

TEST_CASE("Session: commands without reading their answers end the connection", "[protocol]") {
  SessionOptions options;
  options.writer.control_bytes = 1000;
  World world(options);
  world.sink.reads = false;
  std::string pings;
  for (int i = 0; i < 300; ++i) pings += "PING 0123456789\n";
  CHECK(world.send(pings) == "ERR - TOOLONG over 1000 unread bytes of answers; closing\r\n");
  world.sink.take();
  world.executor.run_ready();
  CHECK(world.sink.closed);
}

TEST_CASE("Session: unfinished commands of one connection are bounded", "[protocol]") {
  World world(SessionOptions{.live_requests = 2});
  world.send("GEN a \"x\"\nGEN b \"x\"\n");
  CHECK(world.send("GEN c \"x\"\n").starts_with("ERR c BUSY retry_ms="));
  CHECK(world.send("STATS\n").starts_with("ERR - BUSY retry_ms="));
  world.stream(0)->finish(finish_of(FinishReason::stop));
  world.take();
  CHECK(world.send("GEN c \"x\"\n") == "ACK c\r\n");
}

TEST_CASE("Session: draining refuses new work and closes when idle", "[protocol]") {
  World world;
  world.send("GEN t1 \"x\"\n");
  world.call([](Session& s) { s.drain(); });
  CHECK(world.send("GEN t2 \"x\"\nLOAD t3 layer=1\nPING\n") ==
        "ERR t2 DRAINING the server is shutting down\r\nERR t3 DRAINING the server is shutting "
        "down\r\nPONG\r\n");
  world.stream(0)->finish(finish_of(FinishReason::cancelled));
  CHECK(world.take().starts_with("END t1 cancelled"));
  CHECK(world.sink.closed);
}

TEST_CASE("Session: a peer that goes away at any step leaves nothing behind", "[protocol]") {
  // The same script, cut after n calls of the client by a disconnect or a stop, over many seeds.
  const std::vector<std::string> script = {"GEN a \"x\"\n", "GEN b 3\nab", "c\nCANCEL a\n",
                                           "LOAD l layer=4\n", "STATS\nGEN c \"y\"\n"};
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    World world({}, seed);
    std::mt19937_64 random(seed);
    const std::size_t cut = random() % (script.size() + 1);
    for (std::size_t i = 0; i < cut; ++i) {
      world.session->strand().post([s = world.session, bytes = script[i]] { s->received(bytes); });
      for (std::uint64_t steps = random() % 8; steps > 0; --steps) world.executor.step();
      for (std::size_t r = 0; r < world.script->request_count(); ++r) write_text(world.stream(r), "text");
    }
    const bool hard = seed % 2 == 0;
    world.session->strand().post([s = world.session, hard] {
      if (hard) return s->stop();
      s->disconnected();
    });
    world.executor.run_ready();
    CHECK(world.sink.is_done);
    CHECK(world.session->idle());
    if (hard) continue;
    // Every admitted request was told to stop, once.
    std::vector<actors::RequestId> cancels = world.script->cancels();
    std::sort(cancels.begin(), cancels.end());
    CHECK(std::adjacent_find(cancels.begin(), cancels.end()) == cancels.end());
    CHECK(cancels.size() == world.script->request_count());
  }
}
