// From a path that a user gives to a checkpoint: the path may be that of a checkpoint, of a hint
// file (`latest`, `best`), or of a run directory, which means its newest valid checkpoint. Symbolic
// links are followed.
#pragma once

#include <filesystem>
#include <functional>
#include <vector>

#include "checkpoint/directory.h"
#include "checkpoint/reader.h"

namespace fathom::checkpoint {

// The checkpoint directories that `path` may mean, of a run directory all, newest first.
// CheckpointError if there are none.
[[nodiscard]] std::vector<std::filesystem::path> candidates(const std::filesystem::path& path);

// Calls `on_skipped` for each damaged checkpoint newer than the one that is opened.
// CheckpointError, with the reason for each candidate, if none is valid.
[[nodiscard]] Checkpoint open_checkpoint(
    const std::filesystem::path& path,
    const std::function<void(const SkippedCheckpoint&)>& on_skipped = {});

}  // namespace fathom::checkpoint
