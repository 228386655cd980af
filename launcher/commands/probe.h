// `fathom probe CONFIG_OR_CHECKPOINT`: one batch forward and backward, no update; the statistics of
// every layer as a table or JSON on stdout and, with --out, every parameter's gradient in the
// checkpoint format.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "launcher/command_options.h"

namespace fathom::launcher {

struct ProbeCommand {
  std::string source;                  // a config file, a run directory or a checkpoint
  std::vector<std::string> overrides;  // of a config file
  std::string out;                     // a directory that does not exist yet; empty: none
  bool is_json = false;                // the figures as JSON instead of a table
};

// Declares `probe` and its options; a parse fills `command`.
[[nodiscard]] CommandOptions add_probe(CommandOptions root, ProbeCommand& command);

[[nodiscard]] int probe(const ProbeCommand& command, std::ostream& out);

}  // namespace fathom::launcher
