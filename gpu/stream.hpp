#pragma once
#include "gpu/command_list.hpp"
#include "gpu/event.hpp"
#include "runtime/result.hpp"

namespace helios::gpu {

enum class StreamKind : unsigned char { compute, copy };

/// An ordered queue of work on a device: ordered within, unordered across streams. Calls return at once.
class Stream {
 public:
  static constexpr std::size_t kMaxQueued = 256;  // entries waiting in one stream

  virtual ~Stream() = default;
  /// Enqueues the ops as one program. What the ops point to must live until the stream has passed it.
  /// Errors: bad_request (an op that validate() refuses), busy (kMaxQueued).
  virtual Result<void> launch(CommandList commands) = 0;
  /// Completes when all work enqueued so far is done; its status is the first error since the last record().
  virtual Event record() = 0;
  /// Work enqueued later waits for the event, whatever its outcome.
  virtual void wait(Event event) = 0;
};

}  // namespace helios::gpu
