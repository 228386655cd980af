// `fathom prepare CONFIG`: learns the tokenizer and builds the binary data set, or finds both done.
#pragma once

#include <string>
#include <vector>

#include "launcher/command_options.h"

namespace fathom::launcher {

struct PrepareCommand {
  std::string config;
  std::vector<std::string> overrides;
};

// Declares `prepare` and its options; a parse fills `command`.
[[nodiscard]] CommandOptions add_prepare(CommandOptions root, PrepareCommand& command);

// Prints what was learnt, counted and dropped, and where it lies, to stdout; phases and notes go to
// stderr. Returns the exit code; errors are thrown.
[[nodiscard]] int prepare(const PrepareCommand& command);

}  // namespace fathom::launcher
