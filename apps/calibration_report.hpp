#pragma once
// What calibration found, as a table, as JSON and as a picture.

#include <array>
#include <boost/json/object.hpp>
#include <span>
#include <string>
#include <vector>

#include "actors/policy/learn_then_test.hpp"

namespace helios::apps {

struct ExitCalibration {
  int layer = 0;
  std::vector<std::vector<actors::policy::JudgedToken>> prompts;  // judged tokens by prompt
  actors::policy::CertifiedThreshold certified;
};

struct CalibrationReport {
  std::string model, exits_file;  // exits_file "": the model's own norm and head
  int layers = 0;
  int prompts = 0;
  double delta = 0.0, epsilon = 0.0;  // epsilon of all exits together
  std::vector<ExitCalibration> exits;
};

struct ConfidenceBin {
  double low = 0.0, high = 0.0;
  std::size_t tokens = 0, agreeing = 0;
};

inline constexpr std::array kShownThresholds{0.5, 0.7, 0.9};

/// Ten bins of equal width over [0, 1].
std::array<ConfidenceBin, 10> confidence_bins(const ExitCalibration& exit);

std::string to_table(const CalibrationReport& report);
boost::json::object to_json(const CalibrationReport& report);
/// Agreement by confidence bin, one panel an exit; a bar is as opaque as its bin is full.
std::string to_svg(const CalibrationReport& report);

}  // namespace helios::apps
