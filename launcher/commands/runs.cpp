#include "launcher/commands/runs.h"

#include <algorithm>
#include <array>
#include <ostream>
#include <vector>

#include <fmt/format.h>

#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "launcher/run_overview.h"
#include "monitoring/json.h"

namespace fathom::launcher {
namespace {

constexpr size_t kColumns = 7;
using Row = std::array<std::string, kColumns>;

std::string step_of(const RunOverview& run) {
  const std::string step = run.step ? std::to_string(*run.step) : "-";
  return run.max_steps ? fmt::format("{}/{}", step, *run.max_steps) : step;
}

std::string best_of(const RunOverview& run) {
  if (!run.validation_step) return "-";
  std::string text = run.validation_loss ? fmt::format("{:.4g}", *run.validation_loss) : "";
  if (run.bleu) text += fmt::format("{}BLEU {:.2f}", text.empty() ? "" : ", ", *run.bleu);
  return fmt::format("{} at {}", text, *run.validation_step);
}

double age_of(const RunOverview& run) { return std::max(0.0, wall_seconds() - run.written); }

Row row_of(const RunOverview& run) {
  return {printable(run.name), printable(run.status),
          step_of(run),        run.loss ? fmt::format("{:.4g}", *run.loss) : "-",
          best_of(run),        run.written > 0 ? duration_text(age_of(run)) + " ago" : "-",
          printable(run.note)};
}

void print_table(const std::vector<RunOverview>& runs, std::ostream& out) {
  std::vector<Row> rows = {
      {"name", "status", "step", "loss", "best validation", "last written", ""}};
  for (const RunOverview& run : runs) rows.push_back(row_of(run));
  std::array<size_t, kColumns> widths{};  // of the last one it stays 0
  for (const Row& row : rows)
    for (size_t i = 0; i + 1 < kColumns; ++i) widths[i] = std::max(widths[i], row[i].size());
  for (const Row& row : rows) {
    std::string line;
    for (size_t i = 0; i < kColumns; ++i) line += fmt::format("{:<{}}  ", row[i], widths[i]);
    line.resize(line.find_last_not_of(' ') + 1);
    out << line << "\n";
  }
}

monitoring::Object as_object(const RunOverview& run) {
  monitoring::Object object = {{"name", run.name},
                               {"directory", run.directory.string()},
                               {"status", run.status},
                               {"note", run.note}};
  const auto add = [&object](const char* name, const auto& value) {
    if (value) object.emplace_back(name, *value);
  };
  add("step", run.step);
  add("max_steps", run.max_steps);
  add("loss", run.loss);
  add("validation_loss", run.validation_loss);
  add("bleu", run.bleu);
  add("validation_step", run.validation_step);
  if (run.written > 0) object.emplace_back("age_seconds", age_of(run));
  return object;
}

}  // namespace

CommandOptions add_runs(CommandOptions root, RunsCommand& command) {
  CommandOptions own = root.subcommand("runs", "The runs in a directory, and how they stand");
  own.word("directory", command.directory, "Where the runs are, or a run; without it: runs");
  own.flag("--json", command.json, "One JSON object a line");
  return own;
}

int runs(const RunsCommand& command, std::ostream& out) {
  const std::vector<RunOverview> all = overviews_in(command.directory);
  if (command.json)
    for (const RunOverview& run : all) out << monitoring::to_json(as_object(run)) << "\n";
  else if (all.empty())
    out << "no runs in " << command.directory << "\n";
  else
    print_table(all, out);
  return int(ExitCode::kDone);
}

}  // namespace fathom::launcher
