#include "actors/policy/learn_then_test.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace helios::actors::policy {

namespace {

/// P(X <= k), X binomial(n, p), 0 < p < 1.
double binomial_cdf(int k, int n, double p) {
  double sum = 0.0;
  for (int i = 0; i <= std::min(k, n); ++i) {
    const double log_term = std::lgamma(n + 1.0) - std::lgamma(i + 1.0) - std::lgamma(n - i + 1.0) +
                            i * std::log(p) + (n - i) * std::log1p(-p);
    sum += std::exp(log_term);
  }
  return std::min(sum, 1.0);
}

double relative_entropy(double a, double b) {
  const double left = a > 0 ? a * std::log(a / b) : 0.0;
  const double right = a < 1 ? (1 - a) * std::log((1 - a) / (1 - b)) : 0.0;
  return left + right;
}

}  // namespace

double hoeffding_bentkus_p(double mean_loss, int n, double delta) {
  const double hoeffding = std::exp(-n * relative_entropy(std::min(mean_loss, delta), delta));
  const int wrong =
      static_cast<int>(std::ceil(mean_loss * n - 1e-9));  // a mean of k / n is k, whatever its last bit
  return std::min({1.0, hoeffding, std::numbers::e * binomial_cdf(wrong, n, delta)});
}

double smallest_certifiable(int n, double epsilon) {
  double low = 0.0, high = 1.0;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (hoeffding_bentkus_p(0.0, n, middle) <= epsilon ? high : low) = middle;
  }
  return high;
}

Leaving leaving_at(std::span<const std::vector<JudgedToken>> prompts, double threshold) {
  std::size_t tokens = 0, left = 0, right = 0;
  for (const std::vector<JudgedToken>& prompt : prompts) {
    tokens += prompt.size();
    for (const JudgedToken& token : prompt) {
      if (static_cast<double>(token.confidence) < threshold) continue;
      ++left;
      right += token.agrees ? 1 : 0;
    }
  }
  Leaving leaving;
  if (tokens > 0) leaving.share = static_cast<double>(left) / static_cast<double>(tokens);
  if (left > 0) leaving.agreement = static_cast<double>(right) / static_cast<double>(left);
  return leaving;
}

CertifiedThreshold learn_then_test(std::span<const std::vector<JudgedToken>> prompts, double delta,
                                   double epsilon, double step) {
  std::optional<double> passed;
  const int grid = static_cast<int>(std::lround(1.0 / step));
  for (int i = 0; i <= grid; ++i) {
    const double threshold = 1.0 - static_cast<double>(i) / grid;
    double loss = 0.0;
    int n = 0;
    for (const std::vector<JudgedToken>& prompt : prompts) {
      if (prompt.empty()) continue;
      const auto wrong = std::count_if(prompt.begin(), prompt.end(), [threshold](const JudgedToken& token) {
        return static_cast<double>(token.confidence) >= threshold && !token.agrees;
      });
      loss += static_cast<double>(wrong) / static_cast<double>(prompt.size());
      ++n;
    }
    if (n == 0 || hoeffding_bentkus_p(loss / n, n, delta) > epsilon) break;
    passed = threshold;
  }
  if (!passed) return {};
  const Leaving leaving = leaving_at(prompts, *passed);
  return {passed, leaving.share, leaving.agreement};
}

}  // namespace helios::actors::policy
