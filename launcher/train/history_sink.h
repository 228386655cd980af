// A run's own record: metrics.jsonl, layers.jsonl, events.jsonl. docs/metrics.md says what a line
// has.
#pragma once

#include <filesystem>
#include <mutex>
#include <optional>
#include <vector>

#include "launcher/train/run_observer.h"
#include "monitoring/history.h"

namespace fathom::launcher {

// The lines of steps. Those of a branch are held back until its first save, up to which the steps
// that it will redo count.
class StepHistory {
 public:
  StepHistory(std::filesystem::path path, int64_t resumed_from, bool is_branch);

  void append(monitoring::Object line);
  // What was appended is on disk, and counts. From any thread, concurrently with append().
  void sync();
  // The same, of lines that are not held back.
  void sync_written();

 private:
  void open();

  std::filesystem::path path_;
  int64_t resumed_from_;
  std::mutex mutex_;
  std::optional<monitoring::JsonlWriter> writer_;  // none: lines are held back
  std::vector<monitoring::Object> held_;
};

class HistorySink final : public RunObserver {
 public:
  // Rewinds the histories of steps and layers to `resumed_from`, -1 for a new run; those of a
  // branch with its first save.
  HistorySink(const std::filesystem::path& run, int64_t resumed_from, bool is_branch = false);

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

  StepHistory steps_, layers_;
  monitoring::JsonlWriter events_;
};

}  // namespace fathom::launcher
