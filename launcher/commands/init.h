// `fathom init SOURCE TARGET`: a config to begin with for a corpus of one's own.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "launcher/command_options.h"

namespace fathom::launcher {

struct InitCommand {
  std::string source, target;         // two files, line n of one translates line n of the other
  std::string valid;                  // a prefix, as in data.valid
  std::vector<std::string> hold_out;  // N and DIRECTORY, or nothing
};

// Declares `init` and its options; a parse fills `command`.
[[nodiscard]] CommandOptions add_init(CommandOptions root, InitCommand& command);

// Prints the config to `out`, and what was held out to `notes`. Returns the exit code; DataError
// for texts that cannot be used, InvalidArgument for names that are none of a corpus.
[[nodiscard]] int init(const InitCommand& command, std::ostream& out, std::ostream& notes);

}  // namespace fathom::launcher
