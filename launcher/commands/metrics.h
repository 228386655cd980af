// `fathom metrics`: every metric that a run serves.
#pragma once

#include <iosfwd>
#include <string>

#include "launcher/command_options.h"

namespace fathom::launcher {

struct MetricsCommand {
  std::string format = "text";  // or json: name, type, help, unit, labels, panel, group
};

// Declares `metrics` and its options; a parse fills `command`.
[[nodiscard]] CommandOptions add_metrics(CommandOptions root, MetricsCommand& command);

// Returns the exit code; InvalidArgument for another format.
[[nodiscard]] int metrics(const MetricsCommand& command, std::ostream& out);

}  // namespace fathom::launcher
