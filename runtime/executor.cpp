#include "runtime/executor.hpp"

#include <utility>

namespace helios::runtime {

namespace {
thread_local std::shared_ptr<Executor> t_current;
}

std::shared_ptr<Executor> Executor::current() noexcept { return t_current; }

Executor::Entered::Entered(std::shared_ptr<Executor> executor)
    : previous_(std::exchange(t_current, std::move(executor))) {}

Executor::Entered::~Entered() { t_current = std::move(previous_); }

}  // namespace helios::runtime
