#include "apps/progress_bar.hpp"

#include <unistd.h>

#include <cstdio>
#include <utility>

namespace helios::apps {

using namespace std::chrono_literals;

ProgressBar::ProgressBar(std::string label, std::size_t total)
    : label_(std::move(label)),
      total_(total),
      terminal_(::isatty(STDERR_FILENO) == 1),
      start_(std::chrono::steady_clock::now()) {}

ProgressBar::~ProgressBar() {
  if (!terminal_) return;
  draw();
  std::fputc('\n', stderr);
}

void ProgressBar::advance(std::size_t count) {
  done_ += count;
  if (terminal_ && std::chrono::steady_clock::now() - drawn_ > 100ms) draw();
}

void ProgressBar::draw() {
  constexpr std::size_t kWidth = 30;
  drawn_ = std::chrono::steady_clock::now();
  const std::size_t filled = total_ == 0 ? kWidth : std::min(done_, total_) * kWidth / total_;
  const double seconds = std::chrono::duration<double>(drawn_ - start_).count();
  const std::string bar = std::string(filled, '#') + std::string(kWidth - filled, '.');
  std::fprintf(stderr, "\r%s [%s] %zu/%zu  %.1f s", label_.c_str(), bar.c_str(), done_, total_, seconds);
}

}  // namespace helios::apps
