#pragma once
// Asking work to end early. A source asks, tokens hear it; work looks at its token or registers a callback.

#include <functional>
#include <memory>
#include <stop_token>
#include <utility>

namespace helios::runtime {

/// Copyable; default-constructed it is never cancelled. Thread-safe.
class CancelToken {
 public:
  CancelToken() = default;
  bool cancelled() const noexcept { return token_.stop_requested(); }
  /// False when nobody can cancel it any more.
  bool can_cancel() const noexcept { return token_.stop_possible(); }

 private:
  friend class CancelSource;
  friend class CancelCallback;
  explicit CancelToken(std::stop_token token) : token_(std::move(token)) {}
  std::stop_token token_;
};

/// Copies share one state. Thread-safe.
class CancelSource {
 public:
  /// Runs registered callbacks on this thread; false when it was cancelled before.
  bool cancel() { return source_.request_stop(); }
  bool cancelled() const noexcept { return source_.stop_requested(); }
  CancelToken token() const { return CancelToken(source_.get_token()); }

 private:
  std::stop_source source_;
};

/// Calls `callback` once on cancellation (at once, inline, if that already happened). Destruction unregisters
/// and waits for a call that runs now on another thread; it must not throw.
class CancelCallback {
 public:
  CancelCallback() = default;
  CancelCallback(const CancelToken& token, std::function<void()> callback) {
    if (token.token_.stop_possible()) {
      callback_ =
          std::make_unique<std::stop_callback<std::function<void()>>>(token.token_, std::move(callback));
    }
  }
  void reset() { callback_.reset(); }

 private:
  std::unique_ptr<std::stop_callback<std::function<void()>>> callback_;
};

}  // namespace helios::runtime
