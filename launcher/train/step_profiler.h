// `fathom train --profile`: where the time of a few steps goes, op by op. On rank 0.
#pragma once

#include <filesystem>
#include <optional>
#include <ostream>
#include <vector>

#include "core/autograd/profile.h"

namespace fathom::launcher {

class StepProfiler {
 public:
  // The first step is left out, since memory is touched for the first time in it; the ten after it
  // are profiled.
  static constexpr int kSteps = 10;

  // `trace`: the file for Perfetto (the Trace Event Format of Chrome), written at the end.
  StepProfiler(Context& context, std::filesystem::path trace);

  // What the step's ops report to, null where it is not one of those profiled.
  [[nodiscard]] autograd::Profile* begin_step(int64_t step);
  // When the device is done with the step.
  void end_step();

  // Prints the table, and writes the trace: IoError when that fails. Without a step: says so.
  void finish(std::ostream& out) const;

 private:
  struct Step {
    int64_t number;
    std::vector<autograd::Profile::Span> spans;
  };
  void print(std::ostream& out) const;
  void write_trace() const;

  Context& context_;
  std::filesystem::path trace_;
  int64_t first_ = -1;
  std::optional<autograd::Profile> profile_;
  std::vector<Step> steps_;
};

}  // namespace fathom::launcher
