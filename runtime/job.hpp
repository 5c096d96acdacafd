#pragma once
// A move-only void() for executors. Small callables live inside, so a wake-up allocates nothing.

#include <cstddef>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

namespace helios::runtime {

class Job {
 public:
  Job() noexcept = default;

  template <class F>
    requires(!std::is_same_v<std::decay_t<F>, Job> && std::is_invocable_v<std::decay_t<F>&>)
  Job(F&& function) {  // NOLINT(google-explicit-constructor): lambdas are posted as they are
    using Callable = std::decay_t<F>;
    if constexpr (sizeof(Callable) <= kInlineBytes && alignof(Callable) <= alignof(std::max_align_t) &&
                  std::is_nothrow_move_constructible_v<Callable>) {
      ::new (static_cast<void*>(storage_)) Callable(std::forward<F>(function));
      table_ = &kInlineTable<Callable>;
    } else {
      ::new (static_cast<void*>(storage_)) Callable*(new Callable(std::forward<F>(function)));
      table_ = &kHeapTable<Callable>;
    }
  }

  Job(Job&& other) noexcept : table_(std::exchange(other.table_, nullptr)) {
    if (table_ != nullptr) table_->relocate(storage_, other.storage_);
  }
  Job& operator=(Job&& other) noexcept {
    if (this != &other) {
      reset();
      table_ = std::exchange(other.table_, nullptr);
      if (table_ != nullptr) table_->relocate(storage_, other.storage_);
    }
    return *this;
  }
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;
  ~Job() { reset(); }

  explicit operator bool() const noexcept { return table_ != nullptr; }
  void operator()() { table_->call(storage_); }

  void reset() noexcept {
    if (const Table* table = std::exchange(table_, nullptr)) table->destroy(storage_);
  }

 private:
  static constexpr std::size_t kInlineBytes = 48;
  struct Table {
    void (*call)(void*);
    void (*relocate)(void* to, void* from) noexcept;  // move-constructs `to`, destroys `from`
    void (*destroy)(void*) noexcept;
  };
  template <class F>
  static constexpr Table kInlineTable = {[](void* at) { (*static_cast<F*>(at))(); },
                                         [](void* to, void* from) noexcept {
                                           ::new (to) F(std::move(*static_cast<F*>(from)));
                                           static_cast<F*>(from)->~F();
                                         },
                                         [](void* at) noexcept { static_cast<F*>(at)->~F(); }};
  template <class F>
  static constexpr Table kHeapTable = {
      [](void* at) { (**static_cast<F**>(at))(); },
      [](void* to, void* from) noexcept { ::new (to) F*(*static_cast<F**>(from)); },
      [](void* at) noexcept { delete *static_cast<F**>(at); }};

  alignas(std::max_align_t) std::byte storage_[kInlineBytes];
  const Table* table_ = nullptr;
};

}  // namespace helios::runtime
