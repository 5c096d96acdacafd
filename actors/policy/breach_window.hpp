#pragma once
// The breach counter: how many of the last tokens were below the confidence threshold of their exit.

#include <cstddef>
#include <deque>

namespace helios::actors::policy {

/// A sliding window of max(window_min, 8 x running rows) tokens. It trips when it is full and more than
/// `share_max` of its tokens are breaches. Bounded by its window.
class BreachWindow {
 public:
  BreachWindow(int window_min, double share_max);

  /// One token more. running_rows: sequences that decode now.
  void add(bool breach, int running_rows);
  bool tripped() const;
  /// Breaches over tokens in the window, 0 when empty.
  double rate() const;
  void reset();

  std::size_t window() const { return window_; }
  std::size_t size() const { return tokens_.size(); }

 private:
  int window_min_;
  double share_max_;
  std::size_t window_;
  std::deque<bool> tokens_;
  std::size_t breaches_ = 0;
};

}  // namespace helios::actors::policy
