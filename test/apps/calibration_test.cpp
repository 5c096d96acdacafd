#include <algorithm>
#include <boost/json.hpp>
#include <catch2/catch_test_macros.hpp>
#include <fstream>

#include "apps/calibration_report.hpp"
#include "apps/exit_judge.hpp"
#include "apps/exits_thresholds.hpp"
#include "apps/prompts_file.hpp"
#include "gpu/host_device.hpp"
#include "model/safetensors.hpp"
#include "test/support/tiny_model.hpp"

namespace helios::apps {

namespace {

void write(const test::TempFile& file, std::string_view text) {
  std::ofstream(file.path(), std::ios::binary) << text;
}

std::string safetensors(const std::string& header, std::string_view data) {
  const std::uint64_t size = header.size();
  return std::string(reinterpret_cast<const char*>(&size), sizeof size) + header + std::string(data);
}

CalibrationReport some_report() {
  CalibrationReport report{.model = "m.gguf",
                           .exits_file = "",
                           .layers = 6,
                           .prompts = 2,
                           .delta = 0.1,
                           .epsilon = 0.05,
                           .exits = {}};
  report.exits.push_back(
      {4, {{{0.95F, true}, {0.6F, false}}, {{0.55F, true}, {0.2F, false}}}, {0.9, 0.25, 1.0}});
  report.exits.push_back({5, {{{1.0F, true}}, {}}, {}});
  return report;
}

}  // namespace

TEST_CASE("Calibration: bins, shares and thresholds of a report", "[apps]") {
  const CalibrationReport report = some_report();
  const auto bins = confidence_bins(report.exits[0]);
  CHECK(bins[2].tokens == 1);
  CHECK(bins[5].tokens == 1);
  CHECK(bins[6].tokens == 1);
  CHECK(bins[6].agreeing == 0);
  CHECK(bins[9].agreeing == 1);
  CHECK(confidence_bins(report.exits[1])[9].tokens == 1);  // a confidence of 1 is in the last bin

  const boost::json::object json = to_json(report);
  const auto& exit = json.at("exits").as_array()[0].as_object();
  CHECK(exit.at("tokens").to_number<int>() == 4);
  CHECK(exit.at("agreement").as_double() == 0.5);
  CHECK(exit.at("above").at("0.5").at("share").as_double() == 0.75);
  CHECK(exit.at("certified").at("threshold").as_double() == 0.9);
  CHECK(json.at("exits").as_array()[1].at("certified").is_null());

  const std::string table = to_table(report);
  CHECK(table.find("0.750/0.667") != std::string::npos);
  CHECK(table.find("none") != std::string::npos);
  const std::string svg = to_svg(report);
  CHECK(svg.find("exit 4 of 6: 50.0 % agree") != std::string::npos);
  CHECK(svg.find("exit 5 of 6: 100.0 % agree") != std::string::npos);
}

TEST_CASE("Exits are judged on full depth's prefixes: full depth agrees with itself, a shallow exit does not",
          "[apps]") {
  const test::TempFile path(".gguf");
  test::write_tiny_model(path.path(), {.seed = 5});
  const auto file = model::ModelFile::open(path.path());
  REQUIRE(file.has_value());
  auto device = gpu::HostDevice::create({.arena_bytes = std::size_t{64} << 20U});
  REQUIRE(device.has_value());
  auto judge = ExitJudge::create(**device, *file);
  REQUIRE(judge.has_value());
  std::vector<std::int32_t> prompt;
  for (int i = 0; i < 90; ++i) prompt.push_back((37 * i + 11) % 256);  // more than one step
  const auto answer = judge->answer(prompt, 70);
  REQUIRE(answer.has_value());
  REQUIRE(answer->size() > 10);
  const auto agreeing = [&](int layer) {
    const auto judged = judge->judge(layer, prompt, *answer);
    REQUIRE(judged.has_value());
    REQUIRE(judged->size() == answer->size());
    return std::count_if(judged->begin(), judged->end(), [](const auto& token) { return token.agrees; });
  };
  CHECK(agreeing(6) == static_cast<std::ptrdiff_t>(answer->size()));
  CHECK(agreeing(1) < static_cast<std::ptrdiff_t>(answer->size()));
}

TEST_CASE("Thresholds: a copy has them, loses old ones and keeps its tensors", "[apps]") {
  const test::TempFile from(".safetensors"), to(".safetensors");
  write(from,
        safetensors(R"({"__metadata__":{"layers":"6","exits.4.threshold":"0.5","exits.5.threshold":"0.6"},)"
                    R"("a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})",
                    "12345678"));
  REQUIRE(write_thresholds(from.path(), to.path(), {{4, 0.83}}, "by a test").has_value());
  const auto file = model::Safetensors::open(to.path());
  REQUIRE(file.has_value());
  CHECK((*file)->metadata_value("exits.4.threshold").value() == "0.8300");
  CHECK_FALSE((*file)->metadata_value("exits.5.threshold").has_value());
  CHECK((*file)->metadata_value("layers").value() == "6");
  CHECK((*file)->metadata_value("provenance.calibration").value() == "by a test");
  std::string bytes(8, ' ');
  REQUIRE((*file)->read(**(*file)->require("a"), std::as_writable_bytes(std::span(bytes))).has_value());
  CHECK(bytes == "12345678");

  write(from, "short");
  CHECK(write_thresholds(from.path(), to.path(), {}, "").error().code == Errc::bad_file);
  CHECK(model::Safetensors::open(to.path()).has_value());  // what was there is as it was
  CHECK(write_thresholds("/no/such/file", to.path(), {}, "").error().code == Errc::io_error);
}

TEST_CASE("Prompts: ids and raw come from the line, from its number or from the option", "[apps]") {
  const test::TempFile file(".jsonl");
  write(file,
        "{\"prompt\": \"a\"}\n\n{\"prompt\": \"b\", \"id\": 7, \"raw\": false}\n{\"prompt\": \"c\", \"id\": "
        "\"x\"}\n");
  const auto prompts = read_prompts(file.path(), true);
  REQUIRE(prompts.has_value());
  REQUIRE(prompts->size() == 3);
  CHECK(prompts->at(0).id == "1");
  CHECK(prompts->at(0).raw);
  CHECK(prompts->at(1).id == "7");
  CHECK_FALSE(prompts->at(1).raw);
  CHECK(prompts->at(2).id == "x");
  for (const char* bad :
       {"[1]", "{\"id\": \"a\"}", "{\"prompt\": 1}", "{\"prompt\": \"a\", \"raw\": 1}", "{"}) {
    write(file, bad);
    const auto refused = read_prompts(file.path(), false);
    REQUIRE_FALSE(refused.has_value());
    CHECK(refused.error().message.find(":1:") != std::string::npos);  // the line is named
  }
  CHECK(read_prompts("/no/such/file", false).error().code == Errc::io_error);
}

}  // namespace helios::apps
