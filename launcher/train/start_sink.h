// Records that a branch of the run holds, so that the options that began it do not act again.
#pragma once

#include <filesystem>

#include "launcher/train/run_observer.h"
#include "launcher/train/start_record.h"

namespace fathom::launcher {

class StartSink final : public RunObserver {
 public:
  // `start`: of this start, as RUN/start.json says it.
  StartSink(std::filesystem::path run, StartRecord start)
      : run_(std::move(run)), start_(std::move(start)) {}

  void saved(const SaveRecord& /*record*/) override {
    if (start_.resume.empty() || start_.is_done) return;
    start_.is_done = true;
    write_start(run_, start_);
  }

 private:
  std::filesystem::path run_;
  StartRecord start_;
};

}  // namespace fathom::launcher
