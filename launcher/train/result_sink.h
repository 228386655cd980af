// RUN/result.json: how a run ended. There is none while it runs, nor after it was killed.
#pragma once

#include <filesystem>
#include <vector>

#include "launcher/train/run_observer.h"

namespace fathom::launcher {

class ResultSink final : public RunObserver {
 public:
  explicit ResultSink(const std::filesystem::path& run);  // removes the file of an earlier attempt

  void started(const RunStart& start) override;
  void finished(const RunEnd& end) override;

 private:
  std::filesystem::path path_;
  std::vector<ConfigChange> changes_;
};

}  // namespace fathom::launcher
