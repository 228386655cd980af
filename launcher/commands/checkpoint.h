// `fathom checkpoint list | inspect | verify | diff`. Each PATH is a checkpoint or a run directory.
// Results go to stdout; the return value is the exit code. A PATH that is neither: CheckpointError.
#pragma once

#include <string>
#include <vector>

#include "launcher/command_options.h"

namespace fathom::launcher {

// One line per checkpoint of a run: step, size, path, figures of its validation, which is the best
// by that. One that cannot be read is said in its place.
int checkpoint_list(const std::vector<std::string>& paths);

// Step, run, provenance and a table of the arrays with rms, min and max. A run directory stands for
// its newest valid checkpoint. CheckpointError if there is none.
int checkpoint_inspect(const std::vector<std::string>& paths);

// One line per checkpoint, all of them for a run directory. 0 if every one is valid, else 4.
int checkpoint_verify(const std::vector<std::string>& paths);

// Compares state, never provenance: arrays byte for byte, and the values. 0 and "identical", or 1
// and a line for each difference.
int checkpoint_diff(const std::string& a, const std::string& b);

struct CheckpointCommand {
  enum class Action { kNone, kList, kInspect, kVerify, kDiff, kVerifyChild };
  Action action = Action::kNone;
  std::vector<std::string> paths;
};

// Declares `checkpoint` with its actions; a parse fills `command`.
[[nodiscard]] CommandOptions add_checkpoint(CommandOptions root, CheckpointCommand& command);

// InvalidArgument without an action, and for a diff of more or less than two.
[[nodiscard]] int run_checkpoint(const CheckpointCommand& command);

}  // namespace fathom::launcher
