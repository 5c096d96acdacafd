// The `helios` program: parse options, run one subcommand. Exit codes: 0 done, 1 failed, 2 wrong usage.

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>

#include "apps/commands.hpp"
#include "apps/version.hpp"

int main(int argc, char** argv) {
  using namespace helios::apps;
  CLI::App program{"HELIOS: a server for early-exit large language models", "helios"};
  program.set_version_flag("--version", "helios " HELIOS_VERSION);
  program.require_subcommand(1);
  program.get_formatter()->column_width(34);
  Run run;
  add_serve(program, run);
  add_chat(program, run);
  add_generate(program, run);
  add_inspect(program, run);
  add_bench(program, run);
  add_synth(program, run);
  add_calibrate(program, run);
  try {
    program.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return program.exit(error) == 0 ? 0 : 2;
  }
  try {
    return run();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "helios: %s\n", error.what());
    return 1;
  }
}
