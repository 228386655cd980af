#include "checkpoint/writer.h"

#include <algorithm>

#include <sys/mman.h>
#include <sys/statvfs.h>

#include "checkpoint/files.h"
#include "checkpoint/h5_layout.h"
#include "checkpoint/reader.h"
#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/hash.h"
#include "core/base/text.h"

namespace fathom::checkpoint {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail_not_finite(std::span<const ArrayView> arrays, int64_t step) {
  for (const ArrayView& array : arrays) {
    const int64_t bad = first_non_finite(array.bytes, array.type);
    require<TrainingError>(bad < 0, "checkpoint: ", array.name, " element ", bad,
                           " is not finite at step ", step,
                           "; nothing was saved, older checkpoints are kept. Lower "
                           "optimizer.learning_rate, or set optimizer.clip_norm");
  }
  fail("checkpoint: an array changed while it was saved");
}

// Adds the array to the file's hash and returns its own; nothing if an element is not finite. In
// blocks that fit the cache, so that the three passes read memory once.
std::optional<std::string> hash_array(const ArrayView& array, Xxh3Stream& file) {
  constexpr size_t kBlockBytes = size_t{1} << 18;
  Xxh3Stream hash;
  for (std::span<const std::byte> rest = array.bytes; !rest.empty();) {
    const std::span<const std::byte> block = rest.first(std::min(rest.size(), kBlockBytes));
    if (first_non_finite(block, array.type) >= 0) return std::nullopt;
    hash.add(as_text(block));
    file.add(as_text(block));
    rest = rest.subspan(block.size());
  }
  return hash.digits();
}

// What the manifest says about state.h5 and the arrays in it.
void describe_state(Manifest& manifest, std::span<const ArrayView> arrays,
                    const StateLayout& layout) {
  const std::string hash_of_nothing = xxh3_128(std::string_view());
  for (const ArrayView& array : arrays)
    manifest.arrays.push_back(
        {.name = array.name, .shape = array.shape, .type = array.type, .hash = hash_of_nothing});
  Xxh3Stream file_hash;
  for (const FilePiece& piece : layout.pieces()) {
    if (piece.array < 0) {
      file_hash.add(as_text(piece.bytes));
      continue;
    }
    const auto i = size_t(piece.array);
    const std::optional<std::string> hash = hash_array(arrays[i], file_hash);
    if (!hash) fail_not_finite(arrays, manifest.step);
    manifest.arrays[i].hash = *hash;
  }
  manifest.state_bytes = layout.bytes();
  manifest.state_hash = file_hash.digits();
}

// HDF5 crashes where memory runs out half-way. Other threads go on meanwhile, with needs of theirs.
void require_memory(int64_t needed) {
  const int64_t bytes = needed + (int64_t{48} << 20);
  void* room = ::mmap(nullptr, size_t(bytes), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  require<IoError>(room != MAP_FAILED, "checkpoint: building state.h5 needs ", bytes,
                   " bytes of memory, which cannot be had; lower batch.micro_tokens, or raise "
                   "ulimit -v");
  ::munmap(room, size_t(bytes));
}

void require_space(const Directory& directory, int64_t bytes) {
  struct statvfs status {};
  if (::fstatvfs(directory.descriptor().get(), &status) != 0)
    return;  // the writes will fail instead
  const auto free = static_cast<unsigned long long>(status.f_bavail) * status.f_frsize;
  require<IoError>(free >= static_cast<unsigned long long>(bytes), "checkpoint: saving to ",
                   directory.path().string(), ": ", bytes, " bytes are needed, ", free,
                   " are free; make room");
}

void write_state(const Directory& directory, const StateLayout& layout) {
  std::vector<std::string_view> pieces;
  for (const FilePiece& piece : layout.pieces()) pieces.push_back(as_text(piece.bytes));
  directory.write_new(kStateName, pieces);
}

}  // namespace

SaveReport write_checkpoint(const fs::path& destination, const SavingArchive& archive,
                            const SaveInfo& info, const std::function<void()>& before_publish) {
  const double begin = monotonic_seconds();
  Manifest manifest{.step = info.step,
                    .run_id = info.run_id,
                    .fencing_token = info.fencing_token,
                    .attempt = info.attempt,
                    .metric = {},
                    .provenance = info.provenance,
                    .state = archive.values(),
                    .state_bytes = 0,
                    .state_hash = "",
                    .arrays = {}};
  require_memory(save_overhead_bytes(int64_t(archive.arrays().size())));
  const StateLayout layout(archive.arrays());
  describe_state(manifest, archive.arrays(), layout);
  const std::string text = to_json(manifest);
  const int64_t bytes = manifest.state_bytes + int64_t(text.size());

  const Directory parent(kPlace, parent_of(destination));
  require_space(parent, bytes);
  StagedDirectory aside(parent, temporary_name(), StagedDirectory::Rights::kOfParent);
  write_state(aside.directory(), layout);
  aside.directory().write_new(kManifestName, text);
  if (info.validation)
    aside.directory().write_new(kValidationName, to_json(*info.validation, manifest));
  if (before_publish) before_publish();
  aside.publish_as(destination.filename().string());
  return {.path = destination,
          .bytes = bytes,
          .seconds = monotonic_seconds() - begin,
          .deleted = {},
          .set_aside = {},
          .warnings = {}};
}

}  // namespace fathom::checkpoint
