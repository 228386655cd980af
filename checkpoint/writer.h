// Writes one checkpoint atomically: its files are written and synced in a private directory, which
// one rename makes visible. After a failure that directory is gone, an older checkpoint of the same
// name is untouched, and the process may go on and save again.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/archive.h"
#include "checkpoint/validation_file.h"

namespace fathom::checkpoint {

struct SaveInfo {
  int64_t step = 0;
  std::string run_id;
  int64_t attempt = 0;
  std::string provenance = "{}";  // a JSON object: config hash, data fingerprint, versions, ...
  std::optional<ValidationResult> validation;  // of these weights, where it is known by then
  int64_t fencing_token = 0;
};

struct SaveReport {
  std::filesystem::path path;
  int64_t bytes = 0;  // of manifest.json and state.h5
  double seconds = 0;
  // From CheckpointDirectory::save:
  std::vector<std::filesystem::path> deleted;
  std::vector<std::filesystem::path>
      set_aside;                      // where later checkpoints are now, see begin_branch
  std::vector<std::string> warnings;  // about hints and older checkpoints; the new one is safe
};

// `destination` is the checkpoint's directory; an existing one is replaced atomically.
// `before_publish` is called just before the rename; if it throws, nothing is saved.
// IoError: the system refuses. TrainingError: an array is not finite (names the first element).
[[nodiscard]] SaveReport write_checkpoint(const std::filesystem::path& destination,
                                          const SavingArchive& archive, const SaveInfo& info,
                                          const std::function<void()>& before_publish = {});

// An upper bound of the memory that a save of so many arrays needs beyond the arrays: no array is
// copied, but HDF5's metadata and the manifest grow with their number.
[[nodiscard]] constexpr int64_t save_overhead_bytes(int64_t arrays) {
  return (int64_t{16} << 20) + arrays * (int64_t{3} << 10);
}

}  // namespace fathom::checkpoint
