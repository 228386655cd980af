#include "launcher/metric_catalogue.h"

#include <deque>
#include <string>

#include "core/base/error.h"
#include "core/observe/layer_statistics.h"

namespace fathom::launcher {
namespace {

// A deque never moves its texts, of which the families hold views.
std::vector<monitoring::MetricInfo> make_catalogue(std::deque<std::string>& texts) {
  std::vector<monitoring::BlockGaugeInfo> gauges;
  for (const observe::LayerStatistic& row : observe::layer_statistics()) {
    const std::string& name = texts.emplace_back(join("fathom_layer_", row.name));
    const std::string& help = texts.emplace_back(
        row.source.empty() ? join(row.help, ".") : join(row.help, " (", row.source, ")."));
    gauges.push_back({.name = name, .help = help, .unit = row.unit});
  }
  return monitoring::catalogue(gauges);
}

}  // namespace

const std::vector<monitoring::MetricInfo>& metric_catalogue() {
  static std::deque<std::string> texts;
  static const std::vector<monitoring::MetricInfo> all = make_catalogue(texts);
  return all;
}

}  // namespace fathom::launcher
