#include "launcher/commands/history.h"

#include <ostream>

#include "core/base/error.h"
#include "launcher/flat_history.h"

namespace fathom::launcher {

CommandOptions add_history(CommandOptions root, HistoryCommand& command) {
  CommandOptions own =
      root.subcommand("history", "What a run has recorded, as a table: one row a step");
  own.required("run", command.run, "A run's directory");
  own.option("--what", command.what, "metrics, layers (a row a block) or validations");
  own.flag("--csv", command.csv, "Comma-separated values, with a header (the default)");
  own.flag("--json", command.json, "One JSON object a line");
  return own;
}

int history(const HistoryCommand& command, std::ostream& out) {
  require(!command.csv || !command.json, "history: --csv or --json, not both");
  const FlatHistory table(command.run, history_table(command.what));
  out << (command.json ? table.jsonl() : table.csv());
  return int(ExitCode::kDone);
}

}  // namespace fathom::launcher
