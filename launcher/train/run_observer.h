// The events of a run, for what reports them: metrics, histories, progress, result. All calls come
// from the step loop's thread, in the order of the run, except sync(). Ranks other than 0 have no
// observers, so the loop does not ask for its rank.
#pragma once

#include <span>
#include <vector>

#include "core/observe/layer_statistics.h"
#include "launcher/train/run_records.h"
#include "monitoring/catalogue.h"

namespace fathom::launcher {

class RunObserver {
 public:
  RunObserver() = default;
  virtual ~RunObserver() = default;
  RunObserver(const RunObserver&) = delete;
  RunObserver& operator=(const RunObserver&) = delete;

  virtual void started(const RunStart& /*start*/) {}
  virtual void state_changed(monitoring::RunState /*state*/) {}
  virtual void step_done(const StepRecord& /*record*/) {}
  virtual void layers_measured(int64_t /*step*/, std::span<const observe::LayerRecord> /*layers*/) {
  }
  // Before step_done() of the same step; `blocks` are those whose gradient is not finite.
  virtual void step_skipped(const StepRecord& /*record*/,
                            std::span<const observe::NonfiniteBlock> /*blocks*/) {}
  virtual void validated(const ValidationRecord& /*record*/) {}
  // The first verdict on the run's learning, "plateau: ...".
  virtual void judged(int64_t /*step*/, const std::string& /*verdict*/) {}
  virtual void saved(const SaveRecord& /*record*/) {}
  virtual void save_failed(int64_t /*step*/, const std::string& /*reason*/) {}
  // On return, what was reported before the call is on disk; called before a checkpoint that relies
  // on it. From any thread, concurrently with the other events.
  virtual void sync() {}
  virtual void finished(const RunEnd& /*end*/) {}
};

// Forwards every event to its observers, in the order in which they were added. An exception
// of one reaches the caller; those after it do not get the event.
class RunObservers final : public RunObserver {
 public:
  void add(RunObserver& observer) { all_.push_back(&observer); }  // which outlives the run

  void started(const RunStart& start) override;
  void state_changed(monitoring::RunState state) override;
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
  std::vector<RunObserver*> all_;
};

}  // namespace fathom::launcher
