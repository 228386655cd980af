// `fathom translate RUN_OR_CHECKPOINT [FILE...] [--output FILE]`: greedy decoding, n lines in, n
// out.
#pragma once

#include <istream>
#include <ostream>
#include <string>
#include <vector>

#include "launcher/command_options.h"

namespace fathom::launcher {

struct TranslateCommand {
  std::string model;               // a run directory or a checkpoint
  std::vector<std::string> files;  // plain or .gz, one after the other; none, or "-": `in`
  std::string output;              // a file instead of `out`
  int64_t batch_tokens = 2048;     // source tokens decoded at once; never changes the output
  int threads = 0;                 // 0: all cores allowed
};

// Declares `translate` and its options; a parse fills `command`.
[[nodiscard]] CommandOptions add_translate(CommandOptions root, TranslateCommand& command);

// An empty line gives an empty line; a line over data.max_length tokens is cut, with a warning.
[[nodiscard]] int translate(const TranslateCommand& command, std::istream& in, std::ostream& out);

}  // namespace fathom::launcher
