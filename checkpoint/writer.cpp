#include "checkpoint/writer.h"

#include <sys/statvfs.h>

#include "checkpoint/files.h"
#include "checkpoint/h5_image.h"
#include "checkpoint/reader.h"
#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/hash.h"
#include "core/base/text.h"

namespace fathom::checkpoint {
namespace {

namespace fs = std::filesystem;

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

void require_space(const Directory& directory, int64_t bytes) {
  struct statvfs status {};
  if (::fstatvfs(directory.descriptor().get(), &status) != 0) return;  // the writes will tell
  const auto free = static_cast<unsigned long long>(status.f_bavail) * status.f_frsize;
  require<IoError>(free >= static_cast<unsigned long long>(bytes), "checkpoint: saving to ",
                   directory.path().string(), ": ", bytes, " bytes are needed, ", free,
                   " are free; make room");
}

}  // namespace

SaveResult write_checkpoint(const fs::path& destination, const SavingArchive& archive,
                            const SaveInfo& info, const SaveHooks& hooks) {
  const double begin = monotonic_seconds();
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

  const Directory parent(kPlace, parent_of(destination));
  require_space(parent, bytes);
  StagedDirectory aside(parent, temporary_name(), StagedDirectory::Rights::kOfParent);
  stage("state");
  aside.directory().write_new(kStateName, as_text(image.bytes()));
  stage("manifest");
  aside.directory().write_new(kManifestName, text);
  stage("rename");
  if (hooks.check_fence) hooks.check_fence();
  aside.publish_as(destination.filename().string());
  stage("renamed");
  return {.path = destination, .bytes = bytes, .seconds = monotonic_seconds() - begin};
}

}  // namespace fathom::checkpoint
