// A run's numbers for Prometheus, published with each event; layer statistics with their step.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "launcher/config/config.h"
#include "launcher/train/run_observer.h"
#include "monitoring/metrics.h"

namespace fathom::launcher {

class MetricsSink final : public RunObserver {
 public:
  // `config` outlives it.
  explicit MetricsSink(const Config& config);

  [[nodiscard]] const monitoring::Metrics& metrics() const { return metrics_; }

  void started(const RunStart& start) override;
  void state_changed(monitoring::RunState state) override;
  void step_done(const StepRecord& record) override;
  void layers_measured(int64_t step, std::span<const observe::LayerRecord> layers) override;
  void step_skipped(const StepRecord& record,
                    std::span<const observe::NonfiniteBlock> blocks) override;
  void validated(const ValidationRecord& record) override;
  void saved(const SaveRecord& record) override;
  void save_failed(int64_t step, const std::string& reason) override;
  void finished(const RunEnd& end) override;

 private:
  void set_ranks(const std::vector<RankWork>& ranks);

  void set_status(const std::string& status, const std::string& reason);

  const Config& config_;
  bool has_blocks_;  // monitoring.detail: block
  monitoring::Metrics metrics_;
  monitoring::LabelValues status_;
};

}  // namespace fathom::launcher
