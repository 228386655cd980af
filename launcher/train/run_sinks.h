// All sinks of a run: on rank 0 metrics, histories, progress and result; none on the other ranks.
#pragma once

#include <memory>
#include <string>

#include "launcher/config/config.h"
#include "launcher/train/run_observer.h"
#include "launcher/train/start_record.h"
#include "monitoring/log.h"

namespace fathom::launcher {

class RunSinks {
 public:
  // On rank 0 the run directory exists and is locked. `config` outlives it. `resumed_from`: a step,
  // -1 for a new run. `is_branch`: later steps may be on record, which count until the first save.
  RunSinks(const Config& config, const StartRecord& start, int64_t resumed_from, bool is_branch,
           int rank, monitoring::Log& log);
  ~RunSinks();
  RunSinks(const RunSinks&) = delete;
  RunSinks& operator=(const RunSinks&) = delete;

  [[nodiscard]] RunObserver& observer() { return observers_; }

 private:
  struct Sinks;
  std::unique_ptr<Sinks> sinks_;  // null on other ranks than 0
  RunObservers observers_;
};

}  // namespace fathom::launcher
