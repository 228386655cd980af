// `fathom history RUN`: what a run has recorded, as a flat table for other programs.
#pragma once

#include <iosfwd>
#include <string>

#include "launcher/command_options.h"

namespace fathom::launcher {

struct HistoryCommand {
  std::string run;
  std::string what = "metrics";
  bool csv = false;  // the default
  bool json = false;
};

// Declares `history` and its options; a parse fills `command`.
[[nodiscard]] CommandOptions add_history(CommandOptions root, HistoryCommand& command);

// Returns the exit code; errors as FlatHistory.
[[nodiscard]] int history(const HistoryCommand& command, std::ostream& out);

}  // namespace fathom::launcher
