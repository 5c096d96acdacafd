// HELIOS in ten lines: answers one prompt with the model named on the command line.
#include <helios.hpp>
#include <iostream>

int main(int argc, char** argv) {
  if (argc < 3) return std::cerr << "usage: embed MODEL.gguf PROMPT\n", 2;
  auto engine = helios::Engine::start({.model = argv[1], .memory_bytes = 512U << 20U});
  if (!engine) return std::cerr << engine.error().message << '\n', 1;
  auto answer =
      (*engine)->generate(argv[2], {.max_tokens = 16}, [](auto text) { std::cout << text << std::flush; });
  if (!answer) return std::cerr << answer.error().message << '\n', 1;
  std::cout << "\n[" << answer->completion_tokens << " tokens, " << answer->tokens_per_s << " tokens/s]\n";
}
