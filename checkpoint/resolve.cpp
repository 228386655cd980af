#include "checkpoint/resolve.h"

#include <fstream>
#include <optional>
#include <string>
#include <utility>

#include "core/base/error.h"

namespace fathom::checkpoint {
namespace {

namespace fs = std::filesystem;

// The checkpoint that a hint file names; nothing if `file` is no such file.
std::optional<fs::path> read_hint(const fs::path& file) {
  std::error_code error;
  if (!fs::is_regular_file(file, error)) return std::nullopt;
  std::ifstream in(file);
  std::string name;
  std::getline(in, name);
  if (!parse_step_name(name)) return std::nullopt;
  return file.parent_path() / name;
}

// Of a run's own folder of checkpoints, the run.
fs::path run_of(const fs::path& path) {
  std::error_code error;
  const bool is_folder =
      path.filename() == kCheckpointsName && !fs::exists(path / kCheckpointsName, error);
  return is_folder ? path.parent_path() : path;
}

std::string reasons(const std::vector<SkippedCheckpoint>& skipped) {
  std::string text;
  for (const SkippedCheckpoint& s : skipped) text += "\n  " + s.reason;
  return text;
}

}  // namespace

std::vector<fs::path> candidates(const fs::path& path) {
  std::error_code error;
  const fs::path real = fs::canonical(path, error);
  require<CheckpointError>(!error, "checkpoint: ", path.string(), ": ", error.message());
  if (const std::optional<fs::path> named = read_hint(real)) return {*named};
  if (fs::exists(real / kManifestName, error) || parse_step_name(real.filename().string()))
    return {real};
  std::vector<fs::path> paths;
  for (const CheckpointEntry& entry : CheckpointDirectory::open(run_of(real)).list())
    paths.push_back(entry.path);
  require<CheckpointError>(!paths.empty(), "checkpoint: ", path.string(),
                           " is neither a checkpoint nor a run directory that has one");
  return paths;
}

Checkpoint open_checkpoint(const fs::path& path,
                           const std::function<void(const SkippedCheckpoint&)>& on_skipped) {
  const std::vector<fs::path> paths = candidates(path);
  if (paths.size() == 1) return Checkpoint::open(paths.front());
  SearchResult found = CheckpointDirectory::open(run_of(fs::canonical(path))).newest_valid();
  require<CheckpointError>(found.checkpoint.has_value(), "checkpoint: ", path.string(),
                           " has no valid checkpoint, all are damaged:", reasons(found.skipped));
  if (on_skipped)
    for (const SkippedCheckpoint& skipped : found.skipped) on_skipped(skipped);
  return std::move(*found.checkpoint);
}

}  // namespace fathom::checkpoint
