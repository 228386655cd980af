#include <cerrno>

#include "checkpoint/directory.h"
#include "checkpoint/files.h"
#include "checkpoint/reader.h"
#include "checkpoint/validation_file.h"
#include "core/base/error.h"
#include "core/base/text.h"

namespace fathom::checkpoint {

std::vector<std::filesystem::path> CheckpointDirectory::set_aside_after(int64_t step) const {
  std::vector<std::filesystem::path> moved;
  std::string folder;
  const Directory directory(kPlace, path_);
  for (const CheckpointEntry& entry : list()) {
    if (entry.step <= step) continue;
    if (folder.empty()) {
      folder = free_path(path_ / "abandoned").filename().string();
      make_directories(kPlace, path_ / folder);
    }
    const std::string name = entry.path.filename().string();
    if (!directory.rename(name, join(folder, "/", name)))
      fail_io(kPlace, "moving aside", entry.path, errno);
    moved.push_back(path_ / folder / name);
  }
  if (!folder.empty()) Directory(kPlace, path_ / folder).sync();
  return moved;
}

void CheckpointDirectory::adopt(const Checkpoint& source) {
  require_writable();
  const Directory from(kPlace, source.path());
  const Directory here(kPlace, path_);
  const std::string name = step_name(source.manifest().step);
  StagedDirectory aside(here, temporary_name(), StagedDirectory::Rights::kOfParent);
  for (const char* file : {kStateName, kManifestName}) {
    const Bytes bytes = read_regular_file(from, file, regular_file_size(from, file));
    aside.directory().write_new(file, as_text(bytes.span()));
  }
  if (const auto validation = read_validation(source.path(), source.manifest()))
    aside.directory().write_new(kValidationName, to_json(*validation, source.manifest()));
  (void)Checkpoint::open(aside.directory().path());  // it may have changed since it was opened
  lock_->require_owner();
  aside.publish_as(name);
  here.replace("latest", name + "\n");
}

}  // namespace fathom::checkpoint
