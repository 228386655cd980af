// RUN/checkpoints: the checkpoints of one run. What is in the directory counts; the files `latest`
// and `best` are hints for people and scripts.
//
// directory.cpp lists and finds, directory_save.cpp saves and deletes, directory_branch.cpp is
// about runs that go on from an older checkpoint or from another run's.
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
#include "checkpoint/retention.h"
#include "checkpoint/run_lock.h"
#include "checkpoint/writer.h"

namespace fathom::checkpoint {

inline constexpr const char* kCheckpointsName = "checkpoints";

struct CheckpointEntry {
  int64_t step = 0;
  std::filesystem::path path;
};

struct SkippedCheckpoint {
  std::filesystem::path path;
  std::string reason;
};

// One line: which checkpoint is not used, and why.
[[nodiscard]] std::string describe(const SkippedCheckpoint& skipped);

// No checkpoint and none skipped: the run has none. No checkpoint but some skipped: it has only
// invalid ones.
struct SearchResult {
  std::optional<Checkpoint> checkpoint;
  std::vector<SkippedCheckpoint> skipped;  // newer than the one found
};

class CheckpointDirectory {
 public:
  // For reading. A run without checkpoints/ has an empty list.
  [[nodiscard]] static CheckpointDirectory open(const std::filesystem::path& run_directory);

  // For writing, by the owner of the run's lock, which must outlive this object. Creates the
  // directory, checks that files can be created, synced, renamed and deleted there, and removes
  // what interrupted saves left. IoError; InvalidArgument: checkpoints/ is another user's link.
  [[nodiscard]] static CheckpointDirectory open_for_writing(
      const std::filesystem::path& run_directory, const RunLock& lock);

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  [[nodiscard]] std::vector<CheckpointEntry> list() const;  // newest first, valid or not

  // Tries the newest first. A checkpoint of another run than `run_id` counts as invalid; "" allows
  // any. An invalid checkpoint is never an error; it is in `skipped`, with the reason.
  [[nodiscard]] SearchResult newest_valid(std::string_view run_id = "") const;

  // Saves RUN/checkpoints/step-<info.step>, updates the hints, then deletes the checkpoints that
  // `retention` does not keep; the one just saved is always kept. The lock's token replaces
  // info.fencing_token. Errors as write_checkpoint, and InvalidArgument if another process has
  // taken the run over: the caller must then stop.
  //
  // `before_publish` is called once the files are written and synced, before the checkpoint becomes
  // visible; if it throws, nothing is saved.
  //
  // May run on any thread, one save at a time. Until it returns the arrays must stay as they are,
  // and no other thread may change this object or call HDF5.
  SaveReport save(const SavingArchive& archive, SaveInfo info, const Retention& retention,
                  const std::function<void()>& before_publish = {});

  // Lays what was found of a saved step's weights beside them, where it replaces an earlier result,
  // and applies `retention`, which may know a better one now. IoError; CheckpointError if the
  // checkpoint is not there.
  SaveReport add_validation(int64_t step, const ValidationResult& result,
                            const Retention& retention);

  // Retention neither counts nor deletes this checkpoint, which is known to be damaged.
  void exclude(const SkippedCheckpoint& skipped);

  // For a run that goes on from `step` on purpose, although there are later checkpoints: the next
  // save moves those to checkpoints/abandoned-<UTC time>/, so that an automatic resume does not
  // take one of them. Until the files of that save are on disk they stay where they are.
  void begin_branch(int64_t step) { branch_step_ = step; }

  // Copies another run's checkpoint into this directory, whole, hints included. IoError;
  // CheckpointError when the copy is not valid.
  void adopt(const Checkpoint& source);

 private:
  explicit CheckpointDirectory(std::filesystem::path path, const RunLock* lock)
      : path_(std::move(path)), lock_(lock) {}
  void require_writable() const;
  [[nodiscard]] std::vector<Manifest> manifests_up_to(int64_t saved_step, SaveReport& report) const;
  // What fails here is a warning in `report`.
  void retain(int64_t saved_step, const Retention& retention, SaveReport& report) const;
  [[nodiscard]] std::vector<std::filesystem::path> set_aside_after(int64_t step) const;

  std::filesystem::path path_;
  std::optional<int64_t> branch_step_;
  std::set<std::filesystem::path> excluded_;
  const RunLock* lock_;  // null: opened for reading
};

}  // namespace fathom::checkpoint
