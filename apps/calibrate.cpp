// helios calibrate: how often each exit agrees with full depth, and which confidence is certified to leave
// at.

#include <spdlog/fmt/fmt.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <boost/json.hpp>
#include <cstdio>
#include <fstream>
#include <memory>

#include "actors/prompt_worker.hpp"
#include "apps/calibration_report.hpp"
#include "apps/commands.hpp"
#include "apps/engine_options.hpp"
#include "apps/exit_judge.hpp"
#include "apps/exits_thresholds.hpp"
#include "apps/progress_bar.hpp"
#include "apps/prompts_file.hpp"
#include "gpu/host_device.hpp"

namespace helios::apps {

namespace {

struct CalibrateOptions {
  EngineOptions device;  // what add_device_options sets
  std::string model, exits, prompts_file, output, svg;
  std::vector<int> layers;  // empty: those of the exits file
  bool raw = false, as_json = false;
  int max_tokens = 96, most = 1000000;
  double delta = 0.05, epsilon = 0.05;
};

Result<std::vector<int>> exits_to_judge(const CalibrateOptions& options, const model::ModelFile& file) {
  std::vector<int> layers = options.layers.empty() ? file.exit_layers() : options.layers;
  if (layers.empty())
    return fail(Errc::bad_request, "no exits: give --exits FILE, or --exit-layers for the model's own head");
  std::sort(layers.begin(), layers.end());
  layers.erase(std::unique(layers.begin(), layers.end()), layers.end());
  for (const int layer : layers) {
    if (layer < 1 || layer > file.config().layers) {
      return fail(Errc::bad_request, fmt::format("--exit-layers {}: this model has layers 1 to {}", layer,
                                                 file.config().layers));
    }
  }
  if (!options.output.empty() && file.exits() == nullptr)
    return fail(Errc::bad_request,
                "--output writes thresholds into a copy of an exits file: give --exits FILE");
  return layers;
}

Result<CalibrationReport> measure(const CalibrateOptions& options) {
  Result<std::vector<Prompt>> prompts = read_prompts(options.prompts_file, options.raw);
  if (!prompts) return prompts.error();
  if (prompts->empty())
    return fail(Errc::bad_request, fmt::format("{}: no prompt in it", options.prompts_file));
  if (std::cmp_greater(prompts->size(), options.most))
    prompts->resize(static_cast<std::size_t>(options.most));
  Result<std::shared_ptr<const model::ModelFile>> file = model::ModelFile::open(options.model, options.exits);
  if (!file) return file.error();
  const Result<std::vector<int>> layers = exits_to_judge(options, **file);
  if (!layers) return layers.error();

  Result<gpu::HostOptions> host = make_host_options(options.device);
  if (!host) return host.error();
  Result<std::unique_ptr<gpu::HostDevice>> device = gpu::HostDevice::create(std::move(*host));
  if (!device) return device.error();
  Result<ExitJudge> judge = ExitJudge::create(**device, *file);
  if (!judge) return judge.error();

  CalibrationReport report{.model = options.model,
                           .exits_file = options.exits,
                           .layers = (*file)->config().layers,
                           .prompts = 0,
                           .delta = options.delta,
                           .epsilon = options.epsilon,
                           .exits = {}};
  for (const int layer : *layers) report.exits.push_back({layer, {}, {}});
  ProgressBar progress("prompts", prompts->size());
  for (const Prompt& prompt : *prompts) {
    progress.advance();
    const Result<std::vector<std::int32_t>> ids = actors::prompt_ids(**file, prompt.text, prompt.raw);
    if (!ids) return ids.error();
    if (ids->empty() || std::cmp_greater(ids->size() + static_cast<std::size_t>(options.max_tokens),
                                         (*file)->config().context)) {
      std::fprintf(stderr,
                   "helios calibrate: prompt %s is left out: it is empty or longer than the context\n",
                   prompt.id.c_str());
      continue;
    }
    const Result<std::vector<std::int32_t>> answer = judge->answer(*ids, options.max_tokens);
    if (!answer) return answer.error();
    for (ExitCalibration& exit : report.exits) {
      Result<std::vector<actors::policy::JudgedToken>> judged = judge->judge(exit.layer, *ids, *answer);
      if (!judged) return judged.error();
      exit.prompts.push_back(std::move(*judged));
    }
    ++report.prompts;
  }
  for (ExitCalibration& exit : report.exits) {
    exit.certified = actors::policy::learn_then_test(
        exit.prompts, options.delta, options.epsilon / static_cast<double>(report.exits.size()));
  }
  return report;
}

Result<void> write_text(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text;
  file.close();
  if (!file) return fail(Errc::io_error, fmt::format("cannot write {}", path));
  return {};
}

Result<void> write_results(const CalibrateOptions& options, const CalibrationReport& report) {
  if (!options.svg.empty()) {
    if (Result<void> written = write_text(options.svg, to_svg(report)); !written) return written;
  }
  if (options.output.empty()) return {};
  std::map<int, double> thresholds;
  for (const ExitCalibration& exit : report.exits) {
    if (exit.certified.threshold) thresholds[exit.layer] = *exit.certified.threshold;
  }
  return write_thresholds(
      options.exits, options.output, thresholds,
      fmt::format("learn then test, delta {}, epsilon {}, {} prompts of {} tokens at most", report.delta,
                  report.epsilon, report.prompts, options.max_tokens));
}

int run_calibrate(const CalibrateOptions& options) {
  const Result<CalibrationReport> report = measure(options);
  if (!report) {
    std::fprintf(stderr, "helios calibrate: %s\n", report.error().message.c_str());
    return 1;
  }
  const std::string text =
      options.as_json ? boost::json::serialize(to_json(*report)) + "\n" : to_table(*report);
  std::fputs(text.c_str(), stdout);
  if (Result<void> written = write_results(options, *report); !written) {
    std::fprintf(stderr, "helios calibrate: %s\n", written.error().message.c_str());
    return 1;
  }
  return 0;
}

}  // namespace

void add_calibrate(CLI::App& program, Run& run) {
  auto options = std::make_shared<CalibrateOptions>();
  CLI::App* command = program.add_subcommand(
      "calibrate", "Agreement of exits with full depth by confidence, and thresholds with a guarantee");
  command->add_option("--model", options->model, kModelHelp)->required();
  command->add_option("--exits", options->exits, "Exit heads (*.exits.safetensors)");
  command->add_option("--exit-layers", options->layers, "Exits to judge (default: all of the exits file)")
      ->delimiter(',');
  command
      ->add_option("--prompts", options->prompts_file,
                   R"(JSON lines with "prompt" and, if wanted, "id" and "raw")")
      ->required();
  command->add_option("--most", options->most, "Take the first N prompts")->check(CLI::PositiveNumber);
  command->add_flag("--raw", options->raw, "Continue the text as it is: no chat template");
  command->add_option("--max-tokens", options->max_tokens, "Of full depth's greedy answer to each prompt")
      ->check(CLI::Range(1, 100000));
  command->add_option("--delta", options->delta, "Largest share of a prompt's tokens that may leave wrongly")
      ->check(CLI::Range(0.0001, 0.9999));
  command->add_option("--epsilon", options->epsilon, "Largest probability that the guarantee fails")
      ->check(CLI::Range(0.0001, 0.9999));
  command->add_option("--output", options->output,
                      "Write a copy of the exits file with the certified thresholds");
  command->add_option("--svg", options->svg, "Draw agreement by confidence");
  command->add_flag("--json", options->as_json, "The report as one JSON line, with the confidence bins");
  add_device_options(*command, options->device);
  command->callback([options, &run] { run = [options] { return run_calibrate(*options); }; });
}

}  // namespace helios::apps
