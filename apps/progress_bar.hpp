#pragma once
#include <chrono>
#include <cstddef>
#include <string>

namespace helios::apps {

/// One line on stderr, redrawn at most ten times a second; silent when stderr is not a terminal.
class ProgressBar {
 public:
  ProgressBar(std::string label, std::size_t total);
  ~ProgressBar();  // ends the line
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;
  void advance(std::size_t count = 1);

 private:
  void draw();
  std::string label_;
  std::size_t total_, done_ = 0;
  bool terminal_;
  std::chrono::steady_clock::time_point start_, drawn_{};
};

}  // namespace helios::apps
