#include "checkpoint/directory.h"

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <optional>
#include <set>

#include <sys/stat.h>
#include <unistd.h>

#include "checkpoint/files.h"
#include "core/base/error.h"

namespace fathom::checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr const char* kDirectoryName = "checkpoints";

// A link of ours may lead to a larger disk; one of another user could lead anywhere.
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

// The whole life of a file in small: whatever would fail at the first save fails here, before
// hours of training.
void probe(const Directory& directory) {
  const std::string name = temporary_name();
  directory.replace(name, "probe\n");
  if (!directory.remove(name)) fail_io(kPlace, "deleting", directory.path_of(name), errno);
}

// Out of sight first, so that a kill or a power loss halfway leaves no damaged checkpoint behind.
bool remove_checkpoint(const Directory& directory, const std::string& name) {
  const std::string aside = temporary_name();
  return directory.rename(name, aside) && directory.remove(aside);
}

bool is_better(const Metric& a, const Metric& b) {
  return a.better == Better::kLower ? a.value < b.value : a.value > b.value;
}

// Best first; of equals the newer one. `manifests` are newest first.
std::vector<const Manifest*> by_metric(const std::vector<Manifest>& manifests) {
  std::vector<const Manifest*> ranked;
  for (const Manifest& m : manifests)
    if (m.metric && (ranked.empty() || m.metric->name == ranked.front()->metric->name))
      ranked.push_back(&m);
  std::stable_sort(ranked.begin(), ranked.end(), [](const Manifest* a, const Manifest* b) {
    return is_better(*a->metric, *b->metric);
  });
  return ranked;
}

std::string reasons(const std::vector<Skipped>& skipped) {
  std::string text;
  for (const Skipped& s : skipped) text += "\n  " + s.reason;
  return text;
}

}  // namespace

CheckpointDirectory CheckpointDirectory::open(const fs::path& run_directory) {
  return CheckpointDirectory(run_directory / kDirectoryName, nullptr);
}

CheckpointDirectory CheckpointDirectory::open_for_writing(const fs::path& run_directory,
                                                          const RunLock& lock) {
  const fs::path named = run_directory / kDirectoryName;
  if (::mkdir(named.c_str(), 0777) != 0 && errno != EEXIST)
    fail_io(kPlace, "creating directory", named, errno);
  const fs::path path = follow_own_link(named);
  const Directory directory(kPlace, path);
  lock.require_mine();
  for (const std::string& name : directory.names())
    if (name.starts_with(kTemporaryPrefix)) directory.remove(name);
  probe(directory);
  return CheckpointDirectory(path, &lock);
}

std::vector<Entry> CheckpointDirectory::list() const {
  std::error_code error;
  const bool exists = fs::exists(path_, error);
  // A directory that cannot be looked into is not an empty one: a run would start anew over it.
  if (error) fail_io(kPlace, "looking for", path_, error.value(), Access::kReading);
  if (!exists) return {};
  std::vector<Entry> entries;
  for (const std::string& name : Directory(kPlace, path_, Directory::Links::kFollow).names())
    if (const std::optional<int64_t> step = parse_step_name(name))
      entries.push_back({*step, path_ / name});
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return a.step > b.step; });
  return entries;
}

Found CheckpointDirectory::newest_valid(std::string_view run_id) const {
  Found found;
  for (const Entry& entry : list()) {
    try {
      if (!run_id.empty()) {
        const std::string other = read_manifest(entry.path).run_id;
        require<CheckpointError>(other == run_id, "checkpoint ", entry.path.string(),
                                 ": it is of run '", other, "', this is run '", run_id, "'");
      }
      found.checkpoint = Checkpoint::open(entry.path);
      return found;
    } catch (const Error& e) {
      found.skipped.push_back({entry.path, e.what()});
    }
  }
  return found;
}

Saved CheckpointDirectory::save(const SavingArchive& archive, SaveInfo info,
                                const Retention& retention) {
  require(lock_ != nullptr, "checkpoint: ", path_.string(), " was opened for reading only");
  lock_->require_mine();
  info.fencing_token = lock_->token();
  const Entry saved{info.step, path_ / step_name(info.step)};
  Saved result{
      write_checkpoint(saved.path, archive, info, [this] { lock_->require_mine(); }), {}, {}};
  try {
    retain(saved, retention, result);
  } catch (const Error& e) {
    result.warnings.emplace_back(e.what());
  }
  return result;
}

void CheckpointDirectory::leave_out(const Skipped& skipped) { left_out_.insert(skipped.path); }

void CheckpointDirectory::retain(const Entry& saved, const Retention& retention,
                                 Saved& result) const {
  // Later steps than the one saved are what this run did not resume from: damaged, to be replaced
  // when it gets there again. What cannot be read may be of a newer format: neither counted nor
  // deleted.
  std::vector<Manifest> manifests;
  for (const Entry& entry : list()) {
    if (entry.step > saved.step || (left_out_.contains(entry.path) && entry.step != saved.step))
      continue;
    try {
      manifests.push_back(read_manifest(entry.path));
    } catch (const Error& e) {
      result.warnings.emplace_back(e.what());
    }
  }
  const Directory directory(kPlace, path_);
  const std::vector<const Manifest*> ranked = by_metric(manifests);
  point_hints(directory, saved, ranked.empty() ? nullptr : ranked.front(), result);

  std::set<int64_t> kept = {saved.step};
  for (size_t i = 0; i < manifests.size() && int64_t(i) < retention.keep_last; ++i)
    kept.insert(manifests[i].step);
  for (size_t i = 0; i < ranked.size() && int64_t(i) < retention.keep_best; ++i)
    kept.insert(ranked[i]->step);
  for (const Manifest& m : manifests) {
    if (kept.contains(m.step) ||
        (retention.keep_every > 0 && m.step > 0 && m.step % retention.keep_every == 0))
      continue;
    const std::string name = step_name(m.step);
    if (remove_checkpoint(directory, name))
      result.deleted.push_back(path_ / name);
    else
      result.warnings.push_back(join("checkpoint: ", (path_ / name).string(),
                                     " could not be deleted; delete it by hand"));
  }
}

void CheckpointDirectory::point_hints(const Directory& directory, const Entry& saved,
                                      const Manifest* best, Saved& result) const {
  try {
    directory.replace("latest", step_name(saved.step) + "\n");
    if (best != nullptr) directory.replace("best", step_name(best->step) + "\n");
  } catch (const IoError& e) {
    result.warnings.emplace_back(e.what());
  }
}

std::vector<fs::path> CheckpointDirectory::discard_after(int64_t step) {
  require(lock_ != nullptr, "checkpoint: ", path_.string(), " was opened for reading only");
  lock_->require_mine();
  const Directory directory(kPlace, path_);
  std::vector<fs::path> deleted;
  for (const Entry& entry : list()) {
    if (entry.step <= step) continue;
    if (!remove_checkpoint(directory, entry.path.filename().string()))
      fail_io(kPlace, "deleting", entry.path, errno);
    deleted.push_back(entry.path);
  }
  return deleted;
}

namespace {

// The checkpoint that a hint file, `latest` or `best`, names; none if `file` is no such file.
std::optional<fs::path> pointed_at(const fs::path& file) {
  std::error_code error;
  if (!fs::is_regular_file(file, error)) return std::nullopt;
  std::ifstream in(file);
  std::string name;
  std::getline(in, name);
  if (!parse_step_name(name)) return std::nullopt;
  return file.parent_path() / name;
}

}  // namespace

std::string describe(const Skipped& skipped) {
  const std::string place = "checkpoint " + skipped.path.string();
  // Most reasons begin with the place themselves.
  return skipped.reason.starts_with(place) ? "skipped " + skipped.reason
                                           : join("skipped ", place, ": ", skipped.reason);
}

std::vector<fs::path> candidates(const fs::path& path) {
  std::error_code error;
  const fs::path real = fs::canonical(path, error);
  require<CheckpointError>(!error, "checkpoint: ", path.string(), ": ", error.message());
  if (const std::optional<fs::path> pointed = pointed_at(real)) return {*pointed};
  if (fs::exists(real / kManifestName, error) || parse_step_name(real.filename().string()))
    return {real};
  std::vector<fs::path> paths;
  for (const Entry& entry : CheckpointDirectory::open(real).list()) paths.push_back(entry.path);
  require<CheckpointError>(!paths.empty(), "checkpoint: ", path.string(),
                           " is neither a checkpoint nor a run directory that has one");
  return paths;
}

Checkpoint open_checkpoint(const fs::path& path,
                           const std::function<void(const Skipped&)>& on_skipped) {
  const std::vector<fs::path> paths = candidates(path);
  if (paths.size() == 1) return Checkpoint::open(paths.front());
  Found found = CheckpointDirectory::open(fs::canonical(path)).newest_valid();
  require<CheckpointError>(found.checkpoint.has_value(), "checkpoint: ", path.string(),
                           " has no valid checkpoint, all are damaged:", reasons(found.skipped));
  if (on_skipped)
    for (const Skipped& skipped : found.skipped) on_skipped(skipped);
  return std::move(*found.checkpoint);
}

fs::path resolve(const fs::path& path) { return open_checkpoint(path).path(); }

}  // namespace fathom::checkpoint
