#include "runtime/executor.hpp"

#include <cstdio>
#include <cstdlib>

#include "runtime/sender_table.hpp"

namespace helios::runtime {

namespace {

thread_local Executor* t_executor = nullptr;
thread_local detail::SenderTable* t_sender = nullptr;

}  // namespace

Executor* current_executor() noexcept {
  return t_executor;
}

namespace detail {

CurrentExecutor::CurrentExecutor(Executor& executor, SenderTable* sender) noexcept
    : previous_executor_(t_executor), previous_sender_(t_sender) {
  t_executor = &executor;
  t_sender = sender;
}

CurrentExecutor::~CurrentExecutor() {
  t_executor = previous_executor_;
  t_sender = previous_sender_;
}

SenderTable& current_sender() noexcept {
  if (t_sender != nullptr) return *t_sender;
  thread_local SenderTable of_this_thread;
  return of_this_thread;
}

Executor& require_executor(const char* what) noexcept {
  if (t_executor == nullptr) {
    std::fprintf(stderr, "helios: %s was awaited outside an executor; use sync_wait on plain threads\n",
                 what);
    std::abort();
  }
  return *t_executor;
}

}  // namespace detail
}  // namespace helios::runtime
