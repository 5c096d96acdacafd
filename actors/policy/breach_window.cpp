#include "actors/policy/breach_window.hpp"

#include <algorithm>

namespace helios::actors::policy {

BreachWindow::BreachWindow(int window_min, double share_max)
    : window_min_(std::max(1, window_min)),
      share_max_(share_max),
      window_(static_cast<std::size_t>(window_min_)) {}

void BreachWindow::add(bool breach, int running_rows) {
  window_ = static_cast<std::size_t>(std::max(window_min_, 8 * std::max(0, running_rows)));
  tokens_.push_back(breach);
  breaches_ += breach ? 1 : 0;
  while (tokens_.size() > window_) {
    breaches_ -= tokens_.front() ? 1 : 0;
    tokens_.pop_front();
  }
}

bool BreachWindow::tripped() const {
  return tokens_.size() >= window_ && rate() > share_max_;
}

double BreachWindow::rate() const {
  return tokens_.empty() ? 0.0 : static_cast<double>(breaches_) / static_cast<double>(tokens_.size());
}

void BreachWindow::reset() {
  tokens_.clear();
  breaches_ = 0;
}

}  // namespace helios::actors::policy
