// RUN/checkpoints: the checkpoints of one run, newest first, and which of them to keep.
// What is in the directory decides; the files `latest` and `best` are hints for people and scripts.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/reader.h"
#include "checkpoint/run_lock.h"
#include "checkpoint/writer.h"

namespace fathom::checkpoint {

// A checkpoint survives if any of the three says so. The one just saved always does.
struct Retention {
  int64_t keep_last = 3;   // the newest so many, at least 1
  int64_t keep_best = 1;   // the best so many by the metric of the newest one that has any
  int64_t keep_every = 0;  // steps divisible by this; 0: off
};

struct Entry {
  int64_t step = 0;
  std::filesystem::path path;
};

struct Skipped {
  std::filesystem::path path;
  std::string reason;
};

// Empty `checkpoint` and empty `skipped`: there is none. Empty with skipped: only invalid ones.
struct Found {
  std::optional<Checkpoint> checkpoint;
  std::vector<Skipped> skipped;  // newer than the one found
};

struct Saved : SaveResult {
  std::vector<std::filesystem::path> deleted;
  std::vector<std::string> warnings;  // about hints and old checkpoints; the new one is safe
};

class CheckpointDirectory {
 public:
  // For reading; a run without checkpoints/ is an empty list.
  [[nodiscard]] static CheckpointDirectory open(const std::filesystem::path& run_directory);

  // For writing, by the holder of the run's lock, which must outlive this object. Makes the
  // directory, proves that files can be made, synced, renamed and deleted there, and removes what
  // killed saves left behind. IoError; InvalidArgument: checkpoints/ is somebody else's link.
  [[nodiscard]] static CheckpointDirectory open_for_writing(
      const std::filesystem::path& run_directory, const RunLock& lock);

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  [[nodiscard]] std::vector<Entry> list() const;  // newest first, valid or not

  // Reads from the newest on until one is valid. One of another run than `run_id` is not valid;
  // "" allows any. Never fails for a bad checkpoint: it is in `skipped` with the reason.
  [[nodiscard]] Found newest_valid(std::string_view run_id = "") const;

  // Saves RUN/checkpoints/step-<info.step>, points the hints at it, then deletes what `retention`
  // gives up. The lock's token replaces info.fencing_token. Errors as write_checkpoint, and
  // InvalidArgument when the run was taken over: then stop, do not merely go on without the save.
  Saved save(const SavingArchive& archive, SaveInfo info, const Retention& retention);

  // `skipped` is known to be damaged: retention neither counts nor deletes it.
  void leave_out(const Skipped& skipped);

  // Deletes checkpoints of later steps: for a run that resumes from an older one on purpose, whose
  // next automatic resume must not jump to the abandoned ones. Returns what was deleted.
  std::vector<std::filesystem::path> discard_after(int64_t step);

 private:
  explicit CheckpointDirectory(std::filesystem::path path, const RunLock* lock)
      : path_(std::move(path)), lock_(lock) {}
  void point_hints(const Directory& directory, const Entry& saved, const Manifest* best,
                   Saved& result) const;
  void retain(const Entry& saved, const Retention& retention, Saved& result) const;

  std::filesystem::path path_;
  std::set<std::filesystem::path> left_out_;
  const RunLock* lock_;
};

// `path` is a checkpoint or a hint file, or a run directory: its newest valid one then. Links in it
// are followed. CheckpointError, listing why each candidate was refused. `on_skipped` hears of each
// damaged one that is passed over.
[[nodiscard]] Checkpoint open_checkpoint(
    const std::filesystem::path& path, const std::function<void(const Skipped&)>& on_skipped = {});

// One line: where, and why it is not used.
[[nodiscard]] std::string describe(const Skipped& skipped);

// The checkpoint directories that `path` means: itself, the one that a hint file `latest` or `best`
// names, or all of a run directory, newest first. CheckpointError if it is none of these.
[[nodiscard]] std::vector<std::filesystem::path> candidates(const std::filesystem::path& path);

// Where open_checkpoint(path) would read. CheckpointError.
[[nodiscard]] std::filesystem::path resolve(const std::filesystem::path& path);

}  // namespace fathom::checkpoint
