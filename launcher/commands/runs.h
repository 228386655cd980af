// `fathom runs [DIRECTORY]`: the runs there, and how they stand.
#pragma once

#include <iosfwd>
#include <string>

#include "launcher/command_options.h"

namespace fathom::launcher {

struct RunsCommand {
  std::string directory = "runs";
  bool json = false;
};

// Declares `runs` and its options; a parse fills `command`.
[[nodiscard]] CommandOptions add_runs(CommandOptions root, RunsCommand& command);

// A table, or one JSON object a line. Returns the exit code; errors as overviews_in.
[[nodiscard]] int runs(const RunsCommand& command, std::ostream& out);

}  // namespace fathom::launcher
