// `fathom train CONFIG [key=value ...]`: alone, or on every rank of mpirun or srun.
#pragma once

#include <string>
#include <vector>

#include "dist/session.h"

namespace fathom::launcher {

struct TrainCommand {
  std::string config;
  std::vector<std::string> overrides;
  std::string resume = "auto";  // auto, never, require, or a path
  std::string init_from;        // a checkpoint whose weights start a new run
  bool profile = false;         // a table of ops and RUN/trace.json, of a few steps
};

// Returns the exit code: 0 done, 5 training failed, 75 stopped by a signal after saving.
[[nodiscard]] int train(const TrainCommand& command, dist::Session& session);

}  // namespace fathom::launcher
