#pragma once
// The 2,000 lines of test/data/tokenizer.

#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace helios::test {

struct TokenizerLine {
  bool special = false;  // control tokens in the text are matched
  std::string escaped;   // as in the file
  std::string text;
  std::vector<std::int32_t> smollm2;  // SmolLM2's ids
};

inline std::string unescape(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\') {
      out += text[i];
      continue;
    }
    switch (text[++i]) {
      case 'n':
        out += '\n';
        break;
      case 'r':
        out += '\r';
        break;
      case 't':
        out += '\t';
        break;
      case 'x':
        out += static_cast<char>(std::stoi(std::string(text.substr(i + 1, 2)), nullptr, 16));
        i += 2;
        break;
      default:
        out += text[i];
    }
  }
  return out;
}

inline std::vector<TokenizerLine> tokenizer_lines() {
  std::vector<TokenizerLine> lines;
  std::ifstream file(HELIOS_TEST_DATA "/tokenizer/ids.tsv", std::ios::binary);
  for (std::string line; std::getline(file, line);) {
    const std::size_t tab = line.find('\t', 2);
    TokenizerLine read{line[0] == 'S', line.substr(2, tab - 2), {}, {}};
    read.text = unescape(read.escaped);
    std::istringstream in(line.substr(tab + 1));
    std::int32_t id = 0;
    for (std::string difference; in >> difference;) {
      id += std::stoi(difference, nullptr, 36);
      read.smollm2.push_back(id);
    }
    lines.push_back(std::move(read));
  }
  return lines;
}

}  // namespace helios::test
