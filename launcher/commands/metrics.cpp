#include "launcher/commands/metrics.h"

#include <ostream>

#include <fmt/format.h>

#include "core/base/error.h"
#include "launcher/metric_catalogue.h"
#include "monitoring/json.h"

namespace fathom::launcher {
namespace {

using monitoring::MetricInfo;

std::string as_text(const MetricInfo& info) {
  const std::string labels =
      info.labels.empty() ? "" : fmt::format("{{{}}}", fmt::join(info.labels, ", "));
  const std::string unit = info.unit == "none" ? "" : fmt::format(", {}", info.unit);
  return fmt::format("{}{}\n    {}{}: {}\n", info.name, labels, to_string(info.type), unit,
                     info.help);
}

monitoring::Object as_object(const MetricInfo& info) {
  monitoring::Array labels;
  for (const std::string_view label : info.labels) labels.emplace_back(label);
  return {{"name", info.name},  {"type", to_string(info.type)},
          {"help", info.help},  {"unit", info.unit},
          {"labels", labels},   {"panel", to_string(info.panel)},
          {"group", info.group}};
}

// One family a line, so that versions can be compared.
void print_json(std::ostream& out) {
  const char* separator = "[\n";
  for (const MetricInfo& info : metric_catalogue()) {
    out << separator << monitoring::to_json(as_object(info));
    separator = ",\n";
  }
  out << "\n]\n";
}

}  // namespace

CommandOptions add_metrics(CommandOptions root, MetricsCommand& command) {
  CommandOptions own =
      root.subcommand("metrics", "Every metric that a run serves: type, unit, meaning");
  own.option("--format", command.format, "text or json");
  return own;
}

int metrics(const MetricsCommand& command, std::ostream& out) {
  require(command.format == "text" || command.format == "json", "--format: got ", command.format,
          ", expected text or json");
  if (command.format == "json")
    print_json(out);
  else
    for (const MetricInfo& info : metric_catalogue()) out << as_text(info);
  return int(ExitCode::kDone);
}

}  // namespace fathom::launcher
