#include "checkpoint/writer.h"

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "checkpoint/files.h"
#include "checkpoint/h5_image.h"
#include "checkpoint/hash.h"
#include "checkpoint/reader.h"
#include "core/base/error.h"

namespace fathom::checkpoint {
namespace {

namespace fs = std::filesystem;

// A directory only we can enter, removed with its content unless it was renamed away.
class PrivateDirectory {
 public:
  PrivateDirectory(const FileDescriptor& parent, fs::path parent_path)
      : parent_(parent), parent_path_(std::move(parent_path)), name_(temporary_name()) {
    if (::mkdirat(parent_.get(), name_.c_str(), 0700) != 0)
      fail_io("creating directory", path(), errno);
    try {
      directory_ = open_directory(path());
    } catch (...) {
      remove_tree(parent_, name_);
      throw;
    }
  }
  PrivateDirectory(const PrivateDirectory&) = delete;
  PrivateDirectory& operator=(const PrivateDirectory&) = delete;
  ~PrivateDirectory() { remove_tree(parent_, name_); }  // after an exchange: what was replaced

  [[nodiscard]] fs::path path() const { return parent_path_ / name_; }
  [[nodiscard]] const FileDescriptor& fd() const { return directory_; }

  void make_visible_as(const std::string& name) {
    // The reader's rights are those of the parent: 0700 was for the time of writing only.
    struct stat parent_status {};
    if (::fstat(parent_.get(), &parent_status) != 0 ||
        ::fchmod(directory_.get(), parent_status.st_mode & 0777) != 0)
      fail_io("setting the rights of", path(), errno);
    sync_directory(directory_, path());
    if (::renameat(parent_.get(), name_.c_str(), parent_.get(), name.c_str()) == 0) return;
    if (errno != EEXIST && errno != ENOTEMPTY) fail_io("renaming to", parent_path_ / name, errno);
    if (::renameat2(parent_.get(), name_.c_str(), parent_.get(), name.c_str(), RENAME_EXCHANGE) ==
        0)
      return;
    if (errno != EINVAL && errno != ENOSYS) fail_io("renaming to", parent_path_ / name, errno);
    // Without an atomic exchange (some network file systems) the old one steps aside first.
    const std::string old = temporary_name();
    if (::renameat(parent_.get(), name.c_str(), parent_.get(), old.c_str()) != 0)
      fail_io("moving aside", parent_path_ / name, errno);
    if (::renameat(parent_.get(), name_.c_str(), parent_.get(), name.c_str()) != 0) {
      const int error = errno;
      ::renameat(parent_.get(), old.c_str(), parent_.get(), name.c_str());
      fail_io("renaming to", parent_path_ / name, error);
    }
    remove_tree(parent_, old);
  }

 private:
  const FileDescriptor& parent_;
  fs::path parent_path_;
  std::string name_;
  FileDescriptor directory_;
};

std::vector<ArrayInfo> describe(const SavingArchive& archive, int64_t step) {
  std::vector<ArrayInfo> infos;
  for (const ArrayView& array : archive.arrays()) {
    const int64_t bad = first_non_finite(array.bytes, array.type);
    require<TrainingError>(bad < 0, "checkpoint: ", array.name, " element ", bad,
                           " is not finite at step ", step,
                           "; nothing was saved, older checkpoints are kept");
    infos.push_back({.name = array.name,
                     .shape = array.shape,
                     .type = array.type,
                     .hash = xxh3_128(array.bytes)});
  }
  return infos;
}

void require_space(const FileDescriptor& directory, const fs::path& path, int64_t bytes) {
  struct statvfs status {};
  if (::fstatvfs(directory.get(), &status) != 0) return;  // the writes will tell
  const auto free = static_cast<unsigned long long>(status.f_bavail) * status.f_frsize;
  require<IoError>(free >= static_cast<unsigned long long>(bytes), "checkpoint: saving to ",
                   path.string(), ": ", bytes, " bytes are needed, ", free, " are free; make room");
}

}  // namespace

SaveResult write_checkpoint(const fs::path& destination, const SavingArchive& archive,
                            const SaveInfo& info, const SaveHooks& hooks) {
  const auto begin = std::chrono::steady_clock::now();
  const auto stage = [&](std::string_view name) {
    if (hooks.stage) hooks.stage(name);
  };
  stage("building");
  Manifest manifest{.step = info.step,
                    .run_id = info.run_id,
                    .fencing_token = info.fencing_token,
                    .attempt = info.attempt,
                    .metric = info.metric,
                    .provenance = info.provenance,
                    .state = archive.values(),
                    .state_bytes = 0,
                    .state_hash = "",
                    .arrays = describe(archive, info.step)};
  const H5Image image(archive.arrays());
  manifest.state_bytes = int64_t(image.bytes().size());
  manifest.state_hash = xxh3_128(image.bytes());
  const std::string text = to_json(manifest);
  const int64_t bytes = manifest.state_bytes + int64_t(text.size());

  const fs::path parent_path = destination.has_parent_path() ? destination.parent_path() : ".";
  const FileDescriptor parent = open_directory(parent_path);
  require_space(parent, parent_path, bytes);
  PrivateDirectory aside(parent, parent_path);
  stage("state");
  write_new_file(aside.fd(), aside.path(), kStateName, image.bytes());
  stage("manifest");
  write_new_file(aside.fd(), aside.path(), kManifestName, std::as_bytes(std::span(text)));
  sync_directory(aside.fd(), aside.path());
  stage("rename");
  if (hooks.check_fence) hooks.check_fence();
  aside.make_visible_as(destination.filename().string());
  sync_directory(parent, parent_path);
  stage("renamed");
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin;
  return {.path = destination, .bytes = bytes, .seconds = elapsed.count()};
}

}  // namespace fathom::checkpoint
