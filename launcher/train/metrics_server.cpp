#include "launcher/train/metrics_server.h"

#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "core/base/error.h"
#include "core/base/file.h"

namespace fathom::launcher {
namespace {

namespace fs = std::filesystem;

// RUN/.port: what was asked for, and the port that an earlier start got.
fs::path port_file(const Config& config) { return fs::path(config.run.directory) / ".port"; }

uint16_t last_port(const Config& config) {
  std::ifstream file(port_file(config));
  std::string listen;
  uint16_t port = 0;
  return file >> listen >> port && listen == config.monitoring.listen ? port : uint16_t{0};
}

// Those of runs that are gone.
void remove_stale(const fs::path& targets, const fs::path& root) {
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(targets, ignored))
    if (entry.path().extension() == ".json" &&
        !fs::is_directory(root / entry.path().stem(), ignored))
      fs::remove(entry.path(), ignored);
}

}  // namespace

MetricsServer::MetricsServer(const Config& config, const monitoring::Metrics& metrics,
                             const monitoring::Log& log)
    : exporter_(metrics, {.listen = config.monitoring.listen,
                          .required = config.monitoring.required,
                          .last_port = last_port(config)}) {
  for (const std::string& warning : exporter_.warnings()) log.warn(warning);
  if (exporter_.address().empty()) return;
  log.info("metrics: http://" + exporter_.address() + "/metrics");
  write_file_durably("monitoring", port_file(config),
                     join(config.monitoring.listen, " ", exporter_.port(), "\n"));
  write_targets(config, log);
}

void MetricsServer::write_targets(const Config& config, const monitoring::Log& log) {
  const fs::path run = fs::canonical(config.run.directory);
  const std::string address = monitoring::reachable_address(exporter_.address());
  const std::map<std::string, std::string> labels = {{"run", config.run.name},
                                                     {"instance", config.run.name}};
  own_.emplace(run / "targets.json", address, labels);
  const fs::path targets = run.parent_path() / ".targets";
  try {
    make_directories("targets", targets);
    remove_stale(targets, run.parent_path());
    shared_.emplace(targets / (run.filename().string() + ".json"), address, labels);
  } catch (const IoError& error) {
    log.warn(error.what());  // the run's own file is there
  }
}

}  // namespace fathom::launcher
