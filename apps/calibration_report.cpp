#include "apps/calibration_report.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <boost/json.hpp>

namespace helios::apps {

namespace json = boost::json;
using actors::policy::Leaving;
using actors::policy::leaving_at;

namespace {

constexpr int kPanelWidth = 220, kPanelHeight = 170, kLeft = 40, kTop = 44, kGap = 24, kBottom = 40;

std::size_t token_count(const ExitCalibration& exit) {
  std::size_t count = 0;
  for (const auto& prompt : exit.prompts) count += prompt.size();
  return count;
}

std::string threshold_text(const actors::policy::CertifiedThreshold& certified) {
  if (!certified.threshold) return "none";
  return fmt::format("{:.2f}: {:.3f}/{:.3f}", *certified.threshold, certified.share, certified.agreement);
}

}  // namespace

std::array<ConfidenceBin, 10> confidence_bins(const ExitCalibration& exit) {
  std::array<ConfidenceBin, 10> bins;
  for (std::size_t i = 0; i < bins.size(); ++i) {
    bins[i].low = static_cast<double>(i) / 10;
    bins[i].high = static_cast<double>(i + 1) / 10;
  }
  for (const auto& prompt : exit.prompts) {
    for (const actors::policy::JudgedToken& token : prompt) {
      const auto at =
          static_cast<std::size_t>(std::clamp(static_cast<double>(token.confidence) * 10, 0.0, 9.0));
      ++bins[at].tokens;
      bins[at].agreeing += token.agrees ? 1 : 0;
    }
  }
  return bins;
}

std::string to_table(const CalibrationReport& report) {
  std::string text =
      fmt::format("{}, exits {}: agreement with all {} layers on the same prefixes, {} prompts\n",
                  report.model, report.exits_file.empty() ? "by the model's own head" : report.exits_file,
                  report.layers, report.prompts);
  text += fmt::format("{:>5} {:>8} {:>7}", "exit", "tokens", "agree");
  for (const double threshold : kShownThresholds)
    text += fmt::format(" {:>13}", fmt::format("c>={}", threshold));
  text += fmt::format("  certified (share/agree)\n");
  for (const ExitCalibration& exit : report.exits) {
    text += fmt::format("{:>5} {:>8} {:>7.3f}", exit.layer, token_count(exit),
                        leaving_at(exit.prompts, 0.0).agreement);
    for (const double threshold : kShownThresholds) {
      const Leaving part = leaving_at(exit.prompts, threshold);
      text += fmt::format(" {:>13}", fmt::format("{:.3f}/{:.3f}", part.share, part.agreement));
    }
    text += fmt::format("  {}\n", threshold_text(exit.certified));
  }
  const double each = report.epsilon / static_cast<double>(std::max<std::size_t>(report.exits.size(), 1));
  text += fmt::format(
      "certified: with probability {:.3f} for all exits together, at most {:.3f} of a prompt's tokens leave "
      "wrongly "
      "({} prompts certify {:.4f} at best)\n",
      1 - report.epsilon, report.delta, report.prompts,
      actors::policy::smallest_certifiable(report.prompts, each));
  return text;
}

json::object to_json(const CalibrationReport& report) {
  json::array exits;
  for (const ExitCalibration& exit : report.exits) {
    json::array bins;
    for (const ConfidenceBin& bin : confidence_bins(exit)) {
      bins.push_back(
          {{"low", bin.low}, {"high", bin.high}, {"tokens", bin.tokens}, {"agreeing", bin.agreeing}});
    }
    json::object thresholds;
    for (const double threshold : kShownThresholds) {
      const Leaving part = leaving_at(exit.prompts, threshold);
      thresholds[fmt::format("{}", threshold)] = {{"share", part.share}, {"agreement", part.agreement}};
    }
    json::value certified = nullptr;
    if (exit.certified.threshold) {
      certified = {{"threshold", *exit.certified.threshold},
                   {"share", exit.certified.share},
                   {"agreement", exit.certified.agreement}};
    }
    exits.push_back({{"layer", exit.layer},
                     {"tokens", token_count(exit)},
                     {"agreement", leaving_at(exit.prompts, 0.0).agreement},
                     {"above", std::move(thresholds)},
                     {"bins", std::move(bins)},
                     {"certified", std::move(certified)}});
  }
  return {{"model", report.model},     {"exits_file", report.exits_file}, {"layers", report.layers},
          {"prompts", report.prompts}, {"delta", report.delta},           {"epsilon", report.epsilon},
          {"exits", std::move(exits)}};
}

std::string to_svg(const CalibrationReport& report) {
  const int count = static_cast<int>(report.exits.size());
  const int width = kLeft + std::max(count, 1) * (kPanelWidth + kGap), height = kTop + kPanelHeight + kBottom;
  std::string svg = fmt::format(
      "<svg xmlns='http://www.w3.org/2000/svg' width='{}' height='{}' font-family='sans-serif' "
      "font-size='11'>\n"
      "<rect width='100%' height='100%' fill='white'/>\n",
      width, height);
  for (int e = 0; e < count; ++e) {
    const ExitCalibration& exit = report.exits[static_cast<std::size_t>(e)];
    const int left = kLeft + e * (kPanelWidth + kGap);
    const auto all = static_cast<double>(std::max<std::size_t>(token_count(exit), 1));
    svg += fmt::format("<text x='{}' y='18' font-size='13'>exit {} of {}: {:.1f} % agree</text>\n", left,
                       exit.layer, report.layers, 100 * leaving_at(exit.prompts, 0.0).agreement);
    svg += fmt::format("<text x='{}' y='34' fill='#555'>certified at {}</text>\n", left,
                       threshold_text(exit.certified));
    svg += fmt::format("<rect x='{}' y='{}' width='{}' height='{}' fill='#f6f6f6'/>\n", left, kTop,
                       kPanelWidth, kPanelHeight);
    const auto bins = confidence_bins(exit);
    const double step = static_cast<double>(kPanelWidth) / static_cast<double>(bins.size());
    for (std::size_t i = 0; i < bins.size(); ++i) {
      if (bins[i].tokens == 0) continue;
      const double share = static_cast<double>(bins[i].tokens) / all;
      const double agreement = static_cast<double>(bins[i].agreeing) / static_cast<double>(bins[i].tokens);
      svg += fmt::format(
          "<rect x='{:.1f}' y='{:.1f}' width='{:.1f}' height='{:.1f}' fill='#4c78a8' fill-opacity='{:.2f}'>"
          "<title>confidence {:.1f} to {:.1f}: {:.1f} % of tokens, {:.1f} % agree</title></rect>\n",
          left + static_cast<double>(i) * step + 1, kTop + kPanelHeight * (1 - agreement), step - 2,
          kPanelHeight * agreement, 0.3 + 0.7 * std::min(1.0, share * 3), bins[i].low, bins[i].high,
          100 * share, 100 * agreement);
      svg += fmt::format(
          "<text x='{:.1f}' y='{}' font-size='8' text-anchor='middle' fill='#555'>{:.0f}%</text>\n",
          left + (static_cast<double>(i) + 0.5) * step, kTop + kPanelHeight - 4, 100 * share);
    }
    svg += fmt::format("<text x='{}' y='{}'>confidence 0 to 1; in a bar: share of tokens</text>\n", left,
                       kTop + kPanelHeight + 16);
    if (e == 0) {
      svg += fmt::format("<text x='4' y='{}'>100 %</text><text x='16' y='{}'>0 %</text>\n", kTop + 10,
                         kTop + kPanelHeight);
    }
  }
  return svg + "</svg>\n";
}

}  // namespace helios::apps
