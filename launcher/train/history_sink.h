// A run's own record: metrics.jsonl, layers.jsonl, events.jsonl. docs/metrics.md says what a line
// has.
#pragma once

#include <filesystem>

#include "launcher/train/run_observer.h"
#include "monitoring/history.h"

namespace fathom::launcher {

class HistorySink final : public RunObserver {
 public:
  // Rewinds the histories of steps and layers to `resumed_from`; -1 for a new run.
  HistorySink(const std::filesystem::path& run, int64_t resumed_from);

  void started(const RunStart& start) override;
  void step_done(const StepRecord& record) override;
  void layers_measured(int64_t step, std::span<const observe::LayerRecord> layers) override;
  void step_skipped(const StepRecord& record,
                    std::span<const observe::NonfiniteBlock> blocks) override;
  void validated(const ValidationRecord& record) override;
  void judged(int64_t step, const std::string& verdict) override;
  void saved(const SaveRecord& record) override;
  void save_failed(int64_t step, const std::string& reason) override;
  void sync() override;
  void finished(const RunEnd& end) override;

 private:
  void event(const char* kind, monitoring::Object fields);

  monitoring::JsonlWriter steps_, layers_, events_;
};

}  // namespace fathom::launcher
