// Writes one checkpoint, whole or not at all: files are written and synced in a private directory
// aside, which one rename makes visible. After any failure the temporary directory is gone, what
// was there before is untouched and the process is healthy: it may train on and save again later.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/archive.h"

namespace fathom::checkpoint {

struct SaveInfo {
  int64_t step = 0;
  std::string run_id;
  int64_t attempt = 0;
  std::string provenance = "{}";  // a JSON object: config hash, data fingerprint, versions, ...
  std::optional<Metric> metric;
  int64_t fencing_token = 0;
};

struct SaveReport {
  std::filesystem::path path;
  int64_t bytes = 0;  // of both files
  double seconds = 0;
  // Of a CheckpointDirectory.
  std::vector<std::filesystem::path> deleted;
  std::vector<std::string> warnings;  // about hints and older checkpoints; the new one is safe
};

// `destination` is the checkpoint's directory; one that is there already is replaced in one step.
// `check_owner` is called just before the rename; if it throws, nothing is saved.
// IoError: the disk or the system says no. TrainingError: an array is not finite (names the first).
[[nodiscard]] SaveReport write_checkpoint(const std::filesystem::path& destination,
                                          const SavingArchive& archive, const SaveInfo& info,
                                          const std::function<void()>& check_owner = {});

// The memory that a save of so many arrays needs beyond the arrays themselves: nothing is copied,
// but HDF5 and the manifest keep books.
[[nodiscard]] constexpr int64_t save_overhead_bytes(int64_t arrays) {
  return (int64_t{16} << 20) + arrays * (int64_t{3} << 10);
}

}  // namespace fathom::checkpoint
