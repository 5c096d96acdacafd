#pragma once
#include <string>

namespace helios::apps {

/// Asynchronous logging to stderr: lines for people, or one JSON object a line. The queue is bounded and
/// drops its oldest lines rather than wait.
void start_logging(const std::string& format, const std::string& level);
void stop_logging();  // flushes

}  // namespace helios::apps
