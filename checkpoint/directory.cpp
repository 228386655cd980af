#include "checkpoint/directory.h"

#include <algorithm>

#include "checkpoint/files.h"
#include "core/base/error.h"

namespace fathom::checkpoint {

namespace fs = std::filesystem;

std::string describe(const SkippedCheckpoint& skipped) {
  const std::string place = "checkpoint " + skipped.path.string();
  // Most reasons begin with the place already.
  return skipped.reason.starts_with(place) ? "skipped " + skipped.reason
                                           : join("skipped ", place, ": ", skipped.reason);
}

CheckpointDirectory CheckpointDirectory::open(const fs::path& run_directory) {
  return CheckpointDirectory(run_directory / kCheckpointsName, nullptr);
}

std::vector<CheckpointEntry> CheckpointDirectory::list() const {
  std::error_code error;
  const bool exists = fs::exists(path_, error);
  // A directory that cannot be read is not an empty one: a run would start over in it.
  if (error) fail_io(kPlace, "looking for", path_, error.value(), Access::kReading);
  if (!exists) return {};
  std::vector<CheckpointEntry> entries;
  for (const std::string& name : Directory(kPlace, path_, Directory::Links::kFollow).names())
    if (const std::optional<int64_t> step = parse_step_name(name))
      entries.push_back({*step, path_ / name});
  std::sort(entries.begin(), entries.end(),
            [](const CheckpointEntry& a, const CheckpointEntry& b) { return a.step > b.step; });
  return entries;
}

SearchResult CheckpointDirectory::newest_valid(std::string_view run_id) const {
  SearchResult result;
  for (const CheckpointEntry& entry : list()) {
    try {
      if (!run_id.empty()) {
        const std::string other = read_manifest(entry.path).run_id;
        require<CheckpointError>(other == run_id, "checkpoint ", entry.path.string(),
                                 ": it is of run '", other, "', this is run '", run_id, "'");
      }
      result.checkpoint = Checkpoint::open(entry.path);
      return result;
    } catch (const Error& e) {
      result.skipped.push_back({entry.path, e.what()});
    }
  }
  return result;
}

}  // namespace fathom::checkpoint
