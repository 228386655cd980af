#include <cerrno>

#include <sys/stat.h>
#include <unistd.h>

#include "checkpoint/directory.h"
#include "checkpoint/files.h"
#include "checkpoint/validation_file.h"
#include "core/base/error.h"

namespace fathom::checkpoint {
namespace {

namespace fs = std::filesystem;

// A link of this user may lead to a larger disk; one of another user could lead anywhere.
fs::path follow_own_link(const fs::path& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0 || !S_ISLNK(status.st_mode)) return path;
  require(status.st_uid == ::geteuid(), "checkpoint: ", path.string(),
          " is a symbolic link of another user; remove it");
  std::error_code error;
  fs::path target = fs::canonical(path, error);
  if (error) fail_io(kPlace, "following", path, error.value(), Access::kReading);
  return target;
}

// Everything a save does to a file: what would fail at the first save fails here, before hours of
// training.
void probe(const Directory& directory) {
  const std::string name = temporary_name();
  directory.replace(name, "probe\n");
  if (!directory.remove(name)) fail_io(kPlace, "deleting", directory.path_of(name), errno);
}

// Renamed first, so that an interrupted removal leaves no damaged checkpoint behind.
bool remove_checkpoint(const Directory& directory, const std::string& name) {
  const std::string aside = temporary_name();
  return directory.rename(name, aside) && directory.remove(aside);
}

void update_hints(const Directory& directory, int64_t latest, std::span<const Manifest> manifests,
                  SaveReport& report) {
  const std::vector<const Manifest*> ranked = rank_by_metric(manifests);
  try {
    directory.replace("latest", step_name(latest) + "\n");
    if (!ranked.empty()) directory.replace("best", step_name(ranked.front()->step) + "\n");
  } catch (const IoError& e) {
    report.warnings.emplace_back(e.what());
  }
}

}  // namespace

CheckpointDirectory CheckpointDirectory::open_for_writing(const fs::path& run_directory,
                                                          const RunLock& lock) {
  const fs::path named = run_directory / kCheckpointsName;
  if (::mkdir(named.c_str(), 0777) != 0 && errno != EEXIST)
    fail_io(kPlace, "creating directory", named, errno);
  const fs::path path = follow_own_link(named);
  const Directory directory(kPlace, path);
  lock.require_owner();
  for (const std::string& name : directory.names())
    if (name.starts_with(kTemporaryPrefix)) directory.remove(name);
  probe(directory);
  return CheckpointDirectory(path, &lock);
}

void CheckpointDirectory::require_writable() const {
  require(lock_ != nullptr, "checkpoint: ", path_.string(), " was opened for reading only");
  lock_->require_owner();
}

SaveReport CheckpointDirectory::save(const SavingArchive& archive, SaveInfo info,
                                     const Retention& retention,
                                     const std::function<void()>& before_publish) {
  require_writable();
  info.fencing_token = lock_->token();
  std::vector<fs::path> set_aside;
  SaveReport report = write_checkpoint(path_ / step_name(info.step), archive, info, [&] {
    lock_->require_owner();
    if (branch_step_) set_aside = set_aside_after(*branch_step_);
    if (before_publish) before_publish();
  });
  branch_step_.reset();
  report.set_aside = std::move(set_aside);
  retain(info.step, retention, report);
  return report;
}

SaveReport CheckpointDirectory::add_validation(int64_t step, const ValidationResult& result,
                                               const Retention& retention) {
  require_writable();
  SaveReport report;
  report.path = path_ / step_name(step);
  const std::string text = to_json(result, read_manifest(report.path));
  Directory(kPlace, report.path).replace(kValidationName, text);
  retain(step, retention, report);
  return report;
}

void CheckpointDirectory::exclude(const SkippedCheckpoint& skipped) {
  excluded_.insert(skipped.path);
}

// Newest first. Steps later than the one saved are what this run did not resume from: they are
// damaged, and will be replaced when it gets there again. One that cannot be read may be of a newer
// format. Retention neither counts nor deletes either.
std::vector<Manifest> CheckpointDirectory::manifests_up_to(int64_t saved_step,
                                                           SaveReport& report) const {
  std::vector<Manifest> manifests;
  for (const CheckpointEntry& entry : list()) {
    if (entry.step > saved_step || (entry.step != saved_step && excluded_.contains(entry.path)))
      continue;
    try {
      Manifest manifest = read_manifest(entry.path);
      if (const auto found = read_validation(entry.path, manifest)) manifest.metric = found->metric;
      manifests.push_back(std::move(manifest));
    } catch (const Error& e) {
      report.warnings.emplace_back(e.what());
    }
  }
  return manifests;
}

void CheckpointDirectory::retain(int64_t saved_step, const Retention& retention,
                                 SaveReport& report) const try {
  const std::vector<Manifest> manifests = manifests_up_to(saved_step, report);
  const Directory directory(kPlace, path_);
  update_hints(directory, saved_step, manifests, report);
  std::set<int64_t> kept = steps_to_keep(manifests, retention);
  kept.insert(saved_step);
  for (const Manifest& m : manifests) {
    if (kept.contains(m.step)) continue;
    const std::string name = step_name(m.step);
    if (remove_checkpoint(directory, name))
      report.deleted.push_back(path_ / name);
    else
      report.warnings.push_back(join("checkpoint: ", (path_ / name).string(),
                                     " could not be deleted; delete it by hand"));
  }
} catch (const Error& e) {
  report.warnings.emplace_back(e.what());
}

}  // namespace fathom::checkpoint
