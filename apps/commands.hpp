#pragma once
// One function per subcommand: registers its options on the program and sets `run` when it is chosen.

#include <CLI/App.hpp>
#include <functional>

namespace helios::apps {

/// The chosen subcommand; returns the process's exit code.
using Run = std::function<int()>;

void add_serve(CLI::App& program, Run& run);
void add_chat(CLI::App& program, Run& run);
void add_generate(CLI::App& program, Run& run);
void add_inspect(CLI::App& program, Run& run);
void add_synth(CLI::App& program, Run& run);
void add_bench(CLI::App& program, Run& run);
void add_calibrate(CLI::App& program, Run& run);

}  // namespace helios::apps
