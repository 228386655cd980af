// `fathom metrics`: every metric that a run serves.
#pragma once

#include <iosfwd>
#include <string>

#include "launcher/commands/cli_app.h"

namespace fathom::launcher {

struct MetricsCommand {
  std::string format = "text";  // or json: name, type, help, unit, labels, panel, group
};

// Declares `metrics` and its options; a parse fills `command`.
[[nodiscard]] const CLI::App* add_metrics(CLI::App& app, MetricsCommand& command);

// Returns the exit code; InvalidArgument for another format.
[[nodiscard]] int metrics(const MetricsCommand& command, std::ostream& out);

}  // namespace fathom::launcher
