// RUN/metrics.prom: the metrics as last served, for node_exporter's textfile collector, or for who
// wants to know how a run ended that was never scraped. Every series has the label `run`.
#pragma once

#include <filesystem>
#include <string>

#include "launcher/train/run_observer.h"
#include "monitoring/log.h"
#include "monitoring/metrics.h"

namespace fathom::launcher {

class TextfileSink final : public RunObserver {
 public:
  // Comes after what sets the metrics; all references outlive it. A file that cannot be written is
  // warned of once.
  TextfileSink(std::filesystem::path run, std::string name, const monitoring::Metrics& metrics,
               const monitoring::Log& log)
      : path_(std::move(run) / "metrics.prom"),
        name_(std::move(name)),
        metrics_(metrics),
        log_(log) {}

  void started(const RunStart& /*start*/) override { write(); }
  void validated(const ValidationRecord& /*record*/) override { write(); }
  void saved(const SaveRecord& /*record*/) override { write(); }
  void finished(const RunEnd& /*end*/) override { write(); }

 private:
  void write();

  std::filesystem::path path_;
  std::string name_;
  const monitoring::Metrics& metrics_;
  const monitoring::Log& log_;
  bool has_warned_ = false;
};

}  // namespace fathom::launcher
