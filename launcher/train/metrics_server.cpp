#include "launcher/train/metrics_server.h"

#include <filesystem>

#include "core/base/system.h"

namespace fathom::launcher {

MetricsServer::MetricsServer(const Config& config, const monitoring::Metrics& metrics,
                             const monitoring::Log& log)
    : exporter_(metrics,
                {.listen = config.monitoring.listen, .required = config.monitoring.required}) {
  for (const std::string& warning : exporter_.warnings()) log.warn(warning);
  if (exporter_.address().empty()) return;
  log.info("metrics: http://" + exporter_.address() + "/metrics");
  targets_.emplace(
      std::filesystem::path(config.run.directory) / "targets.json",
      monitoring::reachable_address(exporter_.address()),
      std::map<std::string, std::string>{{"run", config.run.name}, {"job_id", batch_job()}});
}

}  // namespace fathom::launcher
