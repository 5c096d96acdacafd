#include <algorithm>

#include "test/actors/rig.hpp"

namespace helios::test {
namespace {

using namespace std::chrono_literals;
using actors::FinishReason;

TEST_CASE("serving: one request, from ids to text and usage", "[actors]") {
  Rig rig;
  REQUIRE_FALSE(rig.start_error);
  const Outcome out = rig.run(request_of(7, 1, 12));
  REQUIRE_FALSE(out.refused);
  CHECK(out.prompt_tokens == 7);
  CHECK(out.finish.reason == FinishReason::length);
  CHECK(out.finish.usage.prompt_tokens == 7);
  CHECK(out.finish.usage.completion_tokens == 12);
  CHECK(out.ids().size() == 12);
  CHECK(out.finish.ttft_ms > 0);
  CHECK(out.finish.tokens_per_s > 0);
  const int layers = rig.model_stats().layers;
  CHECK(out.finish.usage.mean_depth == layers);
  CHECK(out.finish.usage.exit_histogram == std::map<int, int>{{layers, 12}});
  CHECK_FALSE(out.gap);
  rig.settle();
  rig.check_balanced();
}

TEST_CASE("serving: models served together have one vocabulary", "[actors]") {
  const auto start_with = [](int vocab) {
    const TempFile path(".gguf");
    write_tiny_model(path.path(), {.vocab = vocab, .seed = 2});
    RigOptions options;
    options.tweak = [&](actors::ServerOptions& server) {
      server.models.push_back({.path = path.path(), .name = "other"});
    };
    Rig rig(std::move(options));
    if (rig.start_error) CHECK(rig.device->budget().used() == 0);  // before anything is allocated
    return rig.start_error;
  };
  CHECK_FALSE(start_with(320));
  const std::optional<Error> refused = start_with(300);
  REQUIRE(refused);
  CHECK(refused->code == Errc::bad_request);
  CHECK(refused->message.find("'other' has another vocabulary than 'tiny' (300 and 320 tokens)") !=
        std::string::npos);
}

TEST_CASE("serving: 32 staggered streams give each the same ids as alone", "[actors]") {
  std::vector<actors::GenerateRequest> requests;
  for (int i = 0; i < 32; ++i) {
    auto request = request_of(3 + (i * 5) % 40, i, 4 + (i * 3) % 20);
    if (i % 2 == 1) {  // sampled ones too: their numbers are counted, not drawn
      request.sampling.temperature = 0.9F;
      request.sampling.seed = static_cast<std::uint64_t>(1000 + i);
    }
    requests.push_back(request);
  }
  std::vector<std::vector<std::int32_t>> alone;
  {
    Rig rig;
    for (const auto& request : requests) alone.push_back(rig.run(request).ids());
  }
  Rig rig(RigOptions{.seed = 5});
  std::vector<std::shared_ptr<Outcome>> together;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    together.push_back(rig.start(requests[i], std::chrono::milliseconds(i * 3 % 29)));
  }
  rig.settle();
  for (std::size_t i = 0; i < requests.size(); ++i) {
    CAPTURE(i);
    REQUIRE_FALSE(together[i]->refused);
    CHECK(together[i]->finishes == 1);
    CHECK(together[i]->ids() == alone[i]);
  }
  CHECK(rig.model_stats().steps < 700);  // it did batch
  rig.check_balanced();
}

TEST_CASE("serving: a disconnect frees the blocks by the next step", "[actors]") {
  Rig rig;
  auto stream = actors::TokenStream::create();
  auto leaver = rig.start(request_of(20, 1, 200), {}, stream);
  auto stayer = rig.start(request_of(4, 2, 40));
  rig.run_until([&] { return leaver->last_seq >= 3 && stayer->last_seq >= 3; });
  const auto before = rig.model_stats();
  REQUIRE(before.running == 2);
  (void)rig.server->router().tell_urgent(actors::Cancel{leaver->id});
  // One token of the neighbour may be of the step in flight; its second is of the step after the cancel.
  const std::uint64_t seen = stayer->last_seq;
  rig.run_until([&] { return stayer->last_seq >= seen + 2; });
  const auto after = rig.model_stats();
  CHECK(after.running == 1);
  CHECK(after.blocks_used < before.blocks_used);
  rig.settle();
  CHECK(leaver->finishes == 1);
  CHECK(leaver->finish.reason == FinishReason::cancelled);
  CHECK(stayer->finish.reason == FinishReason::length);
  rig.check_balanced();
}

TEST_CASE("serving: an abandoned stream ends its request", "[actors]") {
  Rig rig;
  auto stream = actors::TokenStream::create();
  auto out = rig.start(request_of(5, 1, 200), {}, stream);
  rig.run_until([&] { return out->last_seq >= 2; });
  stream->abandon();
  rig.settle();
  CHECK(rig.model_stats().completion_tokens < 20);
  rig.check_balanced();
}

TEST_CASE("serving: cancel at every state", "[actors]") {
  for (int us = 0; us < 40'000; us += 700) {
    CAPTURE(us);
    Rig rig(RigOptions{.seed = static_cast<std::uint64_t>(us + 1)});
    auto out = rig.start(request_of(150, 1, 10));
    auto other = rig.start(request_of(4, 2, 6));
    rig.cancel_at(out, std::chrono::microseconds(us));
    rig.cancel_at(out, std::chrono::microseconds(us));  // twice is once
    rig.settle();
    CHECK(out->finishes == 1);
    CHECK_FALSE(out->after_finish);
    CHECK(other->finish.reason == FinishReason::length);
    rig.check_balanced();
  }
}

TEST_CASE("serving: refusals say what and why", "[actors]") {
  Rig rig(RigOptions{.exit_layer = 2});
  const auto refused = [&](actors::GenerateRequest request) {
    const Outcome out = rig.run(std::move(request));
    REQUIRE(out.refused);
    CHECK_FALSE(out.refused->message.empty());
    return out.refused->code;
  };
  auto good = request_of(4, 1, 4);
  auto long_prompt = request_of(5000, 1, 4);
  CHECK(refused(long_prompt) == Errc::too_long);
  auto unknown = good;
  unknown.model = "nobody";
  CHECK(refused(unknown) == Errc::no_model);
  auto policy = good;
  policy.policy = "speculative";
  CHECK(refused(policy) == Errc::unsupported);
  policy.policy = "fast";
  CHECK(refused(policy) == Errc::bad_request);
  policy.policy = "full";
  CHECK(refused(policy) == Errc::no_model);  // layers above 2 are not loaded
  auto deep = good;
  deep.exit_layer = 4;
  CHECK(refused(deep) == Errc::no_model);
  deep.exit_layer = 99;
  CHECK(refused(deep) == Errc::bad_request);
  auto hot = good;
  hot.sampling.temperature = -1;
  CHECK(refused(hot) == Errc::bad_request);
  auto ids = good;
  ids.prompt = actors::PromptIds{1, 2, 1 << 30};
  CHECK(refused(ids) == Errc::bad_request);
  auto empty = good;
  empty.prompt = actors::PromptText{};
  CHECK(refused(empty) == Errc::bad_request);
  CHECK(rig.run(good).finish.reason == FinishReason::length);
  rig.settle();
  rig.check_balanced();
}

TEST_CASE("serving: a request that the memory can never hold is refused at the door", "[actors]") {
  Rig rig(RigOptions{.arena_bytes = tiny_arena_bytes(40)});
  REQUIRE_FALSE(rig.start_error);
  const Outcome out = rig.run(request_of(100, 1, 100));
  REQUIRE(out.refused);
  CHECK(out.refused->code == Errc::too_long);
  CHECK(rig.run(request_of(8, 1, 8)).finish.reason == FinishReason::length);
}

TEST_CASE("serving: more than the memory holds at once waits or is prefilled again, and is right",
          "[actors]") {
  std::vector<std::vector<std::int32_t>> alone;
  {
    Rig rig;
    for (int i = 0; i < 6; ++i) alone.push_back(rig.run(request_of(20, i, 40)).ids());
  }
  Rig rig(RigOptions{.seed = 9, .arena_bytes = tiny_arena_bytes(160)});
  std::vector<std::shared_ptr<Outcome>> outs;
  for (int i = 0; i < 6; ++i) outs.push_back(rig.start(request_of(20, i, 40)));
  rig.settle();
  for (std::size_t i = 0; i < outs.size(); ++i) {
    CAPTURE(i);
    REQUIRE(outs[i]->finish.reason == FinishReason::length);
    CHECK(outs[i]->ids() == alone[i]);
  }
  CHECK(rig.model_stats().preemptions > 0);
  rig.check_balanced();
}

TEST_CASE("serving: the bound of live requests", "[actors]") {
  Rig rig(RigOptions{.tweak = [](actors::ServerOptions& o) { o.limits.live_requests = 3; }});
  std::vector<std::shared_ptr<Outcome>> outs;
  for (int i = 0; i < 5; ++i) outs.push_back(rig.start(request_of(4, i, 8)));
  rig.settle();
  int busy = 0, done = 0;
  for (const auto& out : outs) {
    if (out->refused) {
      CHECK(out->refused->code == Errc::busy);
      ++busy;
    } else {
      ++done;
    }
  }
  CHECK(busy == 2);
  CHECK(done == 3);
  rig.check_balanced();
}

TEST_CASE("serving: a stop id ends the text and is counted", "[actors]") {
  Rig rig;
  const auto free_run = rig.run(request_of(6, 3, 20));
  const std::int32_t stop = free_run.ids()[7];
  const auto first = static_cast<int>(std::find(free_run.ids().begin(), free_run.ids().end(), stop) -
                                      free_run.ids().begin());
  auto request = request_of(6, 3, 20);
  request.sampling.stop_ids = {stop};
  const auto out = rig.run(request);
  CHECK(out.finish.reason == FinishReason::stop);
  CHECK(out.finish.usage.completion_tokens == first + 1);
  CHECK(free_run.text.substr(0, out.text.size()) == out.text);
}

TEST_CASE("serving: a stop string cuts the text where it starts", "[actors]") {
  Rig rig;
  const auto free_run = rig.run(request_of(6, 3, 40));
  REQUIRE(free_run.text.size() > 8);
  const std::string stop = free_run.text.substr(free_run.text.size() / 2, 3);
  auto request = request_of(6, 3, 40);
  request.sampling.stop = {stop};
  const auto out = rig.run(request);
  CHECK(out.finish.reason == FinishReason::stop);
  CHECK(out.text == free_run.text.substr(0, free_run.text.find(stop)));
  CHECK(out.finish.usage.completion_tokens < 40);
  rig.settle();
  rig.check_balanced();
}

TEST_CASE("serving: a reader that does not read loses its own request, nobody else's", "[actors]") {
  Rig rig(RigOptions{.tweak = [](actors::ServerOptions& o) {
    o.write_deadline = std::chrono::milliseconds(20);
    o.stream_bytes = 4096;
  }});
  auto stream = actors::TokenStream::create(256);
  actors::Submit submit;
  submit.request = request_of(4, 1, 200);
  submit.stream = stream;
  const auto accepted =
      runtime::sync_wait(rig.sim, rig.server->router().ask(std::move(submit), runtime::kNever));
  REQUIRE(accepted);
  auto reader = rig.start(request_of(4, 2, 60));
  rig.settle();
  CHECK(reader->finish.reason == FinishReason::length);
  std::optional<actors::Finish> finish;
  while (auto event = stream->try_next()) {
    if (auto* end = std::get_if<actors::Finish>(&*event)) finish = *end;
  }
  REQUIRE(finish);
  CHECK(finish->reason == FinishReason::error);
  CHECK(finish->error->code == Errc::deadline_exceeded);
  rig.check_balanced();
}

TEST_CASE("serving: drain lets running requests end and refuses new ones", "[actors]") {
  Rig rig;
  auto running = rig.start(request_of(4, 1, 30));
  rig.run_until([&] { return running->last_seq >= 2; });
  auto late = rig.start(request_of(4, 2, 4), 5ms);
  const auto drained = rig.server->drain(10s);
  REQUIRE(drained);
  CHECK(drained->finished == 1);
  CHECK(drained->cancelled == 0);
  CHECK(running->finish.reason == FinishReason::length);
  rig.settle();
  REQUIRE(late->refused);
  CHECK(late->refused->code == Errc::draining);
}

TEST_CASE("serving: the deadline of a drain cancels what is left", "[actors]") {
  Rig rig;
  auto running = rig.start(request_of(4, 1, 400));
  rig.run_until([&] { return running->last_seq >= 2; });
  const auto drained = rig.server->drain(10ms);
  REQUIRE(drained);
  CHECK(drained->cancelled == 1);
  rig.settle();
  CHECK(running->finish.reason == FinishReason::cancelled);
}

TEST_CASE("serving: stopping the system ends every stream", "[actors]") {
  Rig rig;
  auto stream = actors::TokenStream::create();
  actors::Submit submit;
  submit.request = request_of(4, 1, 400);
  submit.stream = stream;
  REQUIRE(runtime::sync_wait(rig.sim, rig.server->router().ask(std::move(submit), runtime::kNever)));
  rig.sim.run_for(5ms);
  rig.system->stop();
  int finishes = 0;
  while (auto event = stream->try_next()) finishes += std::holds_alternative<actors::Finish>(*event) ? 1 : 0;
  CHECK(finishes == 1);
}

TEST_CASE("serving: metrics carry the names dashboards know", "[actors]") {
  Rig rig;
  (void)rig.run(request_of(7, 1, 12));
  rig.settle();
  const std::string text = rig.metrics.prometheus_text();
  for (const char* name :
       {"helios_num_requests_running", "helios_num_requests_waiting", "helios_kv_cache_usage_perc",
        "helios_prompt_tokens_total", "helios_generation_tokens_total", "helios_request_success_total",
        "helios_time_to_first_token_seconds", "helios_inter_token_latency_seconds",
        "helios_e2e_request_latency_seconds"}) {
    CAPTURE(name);
    CHECK(text.find(name) != std::string::npos);
  }
  CHECK(text.find("helios_generation_tokens_total{model_name=\"tiny\"} 12") != std::string::npos);
}

}  // namespace
}  // namespace helios::test
