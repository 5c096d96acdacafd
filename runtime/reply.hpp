#pragma once
// The one answer to an ask. The type sees to it that there is exactly one.

#include <memory>
#include <utility>

#include "runtime/one_shot.hpp"
#include "runtime/result.hpp"

namespace helios::runtime {

/// Travels as the member `reply` of a message. Move-only; answered by send or fail, or by Errc::dropped when
/// it is destroyed. An answer after the asker's deadline goes nowhere. A default-constructed one (message by
/// tell) swallows its answer.
template <class T = void>
class [[nodiscard]] Reply {
 public:
  using value_type = T;
  using State = OneShot<Result<T>>;

  Reply() noexcept = default;
  explicit Reply(std::shared_ptr<State> state) noexcept : state_(std::move(state)) {}
  Reply(Reply&&) noexcept = default;
  Reply& operator=(Reply&& other) noexcept {
    if (this != &other) {
      drop();
      state_ = std::move(other.state_);
    }
    return *this;
  }
  ~Reply() { drop(); }

  /// Reply<void>: send(). False: nobody waits any more.
  template <class... U>
  bool send(U&&... value) {
    return answer(Result<T>(boost::system::in_place_value, std::forward<U>(value)...));
  }
  bool fail(Error error) { return answer(Result<T>(std::move(error))); }
  bool complete(Result<T> result) { return answer(std::move(result)); }

  /// Not answered yet, and somebody asked.
  explicit operator bool() const noexcept { return state_ != nullptr; }
  /// False when the asker has its answer already (deadline): the work may be skipped.
  bool wanted() const { return state_ && !state_->is_set(); }

 private:
  bool answer(Result<T> result) {
    const std::shared_ptr<State> state = std::exchange(state_, nullptr);
    return state && state->set(std::move(result));
  }
  void drop() noexcept {
    if (state_) answer(helios::fail(Errc::dropped, "the receiver went away without an answer"));
  }
  std::shared_ptr<State> state_;
};

}  // namespace helios::runtime
