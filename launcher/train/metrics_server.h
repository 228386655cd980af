// The endpoint of a run, and the files by which Prometheus finds it while the run is alive:
// RUN/targets.json, and the same as NAME.json in .targets beside the run's directory, where one
// glob finds all runs of a folder. Their labels are those that no attempt changes.
#pragma once

#include <optional>

#include "launcher/config/config.h"
#include "monitoring/exporter.h"
#include "monitoring/log.h"
#include "monitoring/targets.h"

namespace fathom::launcher {

class MetricsServer {
 public:
  // Logs where the metrics are. A run that could not have its port asks for the same other one at
  // its next start (RUN/.port). `metrics` outlive it; errors as for monitoring::Exporter, and
  // IoError where RUN/targets.json cannot be written.
  MetricsServer(const Config& config, const monitoring::Metrics& metrics,
                const monitoring::Log& log);

 private:
  void write_targets(const Config& config, const monitoring::Log& log);

  monitoring::Exporter exporter_;
  std::optional<monitoring::TargetsFile> own_, shared_;
};

}  // namespace fathom::launcher
