#include "runtime/actor_system.hpp"

namespace helios::runtime {

void ActorSystem::stop() {
  // One at a time: an actor may use those spawned before it until it is gone.
  while (!cells_.empty()) {
    const std::shared_ptr<detail::CellControl> cell = cells_.back();
    cell->start_stop();
    executor_.drive([&] { return cell->stopped(); }, std::chrono::seconds(60));
    cells_.pop_back();
  }
}

}  // namespace helios::runtime
