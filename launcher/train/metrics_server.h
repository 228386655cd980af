// The endpoint of a run, and RUN/targets.json, by which Prometheus finds it while the run is alive.
#pragma once

#include <optional>

#include "launcher/config/config.h"
#include "monitoring/exporter.h"
#include "monitoring/log.h"
#include "monitoring/targets.h"

namespace fathom::launcher {

class MetricsServer {
 public:
  // Logs where the metrics are. `metrics` outlive it; errors as for monitoring::Exporter.
  MetricsServer(const Config& config, const monitoring::Metrics& metrics,
                const monitoring::Log& log);

 private:
  monitoring::Exporter exporter_;
  std::optional<monitoring::TargetsFile> targets_;
};

}  // namespace fathom::launcher
