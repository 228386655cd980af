// What a person at the terminal sees: the progress bar and lines of the log.
#pragma once

#include <iosfwd>

#include "launcher/train/run_observer.h"
#include "monitoring/log.h"
#include "monitoring/progress.h"

namespace fathom::launcher {

class ProgressSink final : public RunObserver {
 public:
  // Both outlive it. A line of the log takes the bar off the screen first.
  ProgressSink(std::ostream& out, monitoring::ProgressConfig config, monitoring::Log& log);
  ~ProgressSink() override;
  ProgressSink(const ProgressSink&) = delete;
  ProgressSink& operator=(const ProgressSink&) = delete;

  void step_done(const StepRecord& record) override;
  void validated(const ValidationRecord& record) override;
  void judged(int64_t step, const std::string& verdict) override;
  void saved(const SaveRecord& record) override;
  void save_failed(int64_t step, const std::string& reason) override;
  void finished(const RunEnd& end) override;

 private:
  monitoring::Log& log_;
  double noted_at_ = 0;  // the last step that went to the log's file, monotonic seconds
  monitoring::Progress progress_;
};

}  // namespace fathom::launcher
