// `fathom train CONFIG [key=value ...]`: alone, or on every rank of mpirun or srun.
#pragma once

#include <string>
#include <vector>

#include "dist/session.h"
#include "launcher/command_options.h"
#include "launcher/train/run_options.h"

namespace fathom::launcher {

struct TrainCommand {
  std::string config;
  std::vector<std::string> overrides;
  std::string allow_change;  // KEY,KEY,...
  bool is_quiet = false, is_verbose = false;
  RunOptions options;
};

// Declares `train` and its options; a parse fills `command`.
[[nodiscard]] CommandOptions add_train(CommandOptions root, TrainCommand& command);

// Returns the exit code: 0 done, 5 training failed, 75 stopped by a signal after saving.
[[nodiscard]] int train(const TrainCommand& command, dist::Session& session);

}  // namespace fathom::launcher
