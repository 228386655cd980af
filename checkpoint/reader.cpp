#include "checkpoint/reader.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>

#include "checkpoint/h5_reader.h"
#include "checkpoint/validation_file.h"
#include "core/base/error.h"
#include "core/base/hash.h"
#include "core/base/text.h"

namespace fathom::checkpoint {
namespace {

static_assert(std::endian::native == std::endian::little,
              "arrays are stored as they lie in memory");

template <class Bits>
int64_t find_non_finite(std::span<const std::byte> bytes, Bits exponent) {
  constexpr size_t kBlock = 4096;
  const size_t count = bytes.size() / sizeof(Bits);
  const auto is_bad = [&](size_t i) {
    Bits bits;
    std::memcpy(&bits, bytes.data() + i * sizeof(Bits), sizeof(Bits));
    return (bits & exponent) == exponent;
  };
  for (size_t begin = 0; begin < count; begin += kBlock) {
    const size_t end = std::min(begin + kBlock, count);
    // No early exit within a block, so that the compiler can use vectors.
    unsigned bad = 0;
    for (size_t i = begin; i < end; ++i) bad |= unsigned{is_bad(i)};
    if (bad != 0)
      for (size_t i = begin;; ++i)
        if (is_bad(i)) return int64_t(i);
  }
  return -1;
}

Manifest read_held_manifest(const Directory& directory) {
  const std::filesystem::path& path = directory.path();
  const int64_t size = regular_file_size(directory, kManifestName);
  require<CheckpointError>(size <= kMaxManifestBytes, "checkpoint ", path.string(), ": ",
                           kManifestName, " has ", size, " bytes, allowed are ", kMaxManifestBytes);
  const Bytes text = read_regular_file(directory, kManifestName, size);
  Manifest manifest = parse_manifest(as_text(text.span()), path.string());
  const std::string name = path.filename().string();
  require<CheckpointError>(!name.starts_with("step-") || name == step_name(manifest.step),
                           "checkpoint ", path.string(), ": its manifest is of step ",
                           manifest.step, "; was the directory renamed or its files swapped?");
  return manifest;
}

Directory open_checkpoint_directory(const std::filesystem::path& path) {
  try {
    return Directory(kPlace, path);
  } catch (const IoError& e) {
    throw CheckpointError(e.what());
  }
}

// Hidden ones are of file browsers, of network file systems, or of a write that was interrupted.
void refuse_other_files(const Directory& directory) {
  try {
    for (const std::string& name : directory.names())
      require<CheckpointError>(name == kManifestName || name == kStateName ||
                                   name == kValidationName || name.starts_with('.'),
                               "checkpoint ", directory.path().string(), ": ", name,
                               " does not belong there; move it away");
  } catch (const IoError& e) {
    throw CheckpointError(e.what());
  }
}

}  // namespace

int64_t first_non_finite(std::span<const std::byte> bytes, ElementType type) {
  return type == ElementType::kF32 ? find_non_finite<uint32_t>(bytes, 0x7F800000u)
                                   : find_non_finite<uint64_t>(bytes, 0x7FF0000000000000u);
}

Manifest read_manifest(const std::filesystem::path& directory) {
  return read_held_manifest(open_checkpoint_directory(directory));
}

Checkpoint Checkpoint::open(const std::filesystem::path& directory) try {
  Checkpoint c;
  c.path_ = directory.filename().empty() ? directory.parent_path() : directory;
  const std::string where = c.path_.string();
  const Directory held = open_checkpoint_directory(c.path_);
  c.manifest_ = read_held_manifest(held);
  refuse_other_files(held);

  c.image_ = read_regular_file(held, kStateName, c.manifest_.state_bytes);
  const std::string hash = xxh3_128(c.image_.span());
  require<CheckpointError>(hash == c.manifest_.state_hash, "checkpoint ", where, ": ", kStateName,
                           " has hash ", hash, ", the manifest says ", c.manifest_.state_hash,
                           "; it is damaged");
  c.offsets_ = locate_arrays(c.image_.span(), c.manifest_.arrays, where);
  for (size_t i = 0; i < c.manifest_.arrays.size(); ++i)
    c.index_.emplace(c.manifest_.arrays[i].name, i);

  for (const ArrayInfo& info : c.manifest_.arrays) {
    const std::string array_hash = xxh3_128(c.bytes(info));
    require<CheckpointError>(array_hash == info.hash, "checkpoint ", where, ": ", info.name,
                             " has hash ", array_hash, ", the manifest says ", info.hash,
                             "; it is damaged");
    const int64_t bad = first_non_finite(c.bytes(info), info.type);
    require<CheckpointError>(bad < 0, "checkpoint ", where, ": ", info.name, " element ", bad,
                             " is not finite; use an older checkpoint");
  }
  return c;
} catch (const std::bad_alloc&) {
  fail<CheckpointError>("checkpoint ", directory.string(), ": not enough memory to read it");
}

const ArrayInfo* Checkpoint::find(std::string_view name) const {
  const auto found = index_.find(std::string(name));
  return found == index_.end() ? nullptr : &manifest_.arrays[found->second];
}

std::span<const std::byte> Checkpoint::bytes(const ArrayInfo& info) const {
  const size_t i = index_.at(info.name);
  return image_.span().subspan(size_t(offsets_[i]), size_t(info.bytes()));
}

std::vector<double> Checkpoint::values(const ArrayInfo& info) const {
  const std::span<const std::byte> source = bytes(info);
  std::vector<double> out(size_t(element_count(info.shape)));
  for (size_t i = 0; i < out.size(); ++i) {
    if (info.type == ElementType::kF32) {
      float v;
      std::memcpy(&v, source.data() + i * sizeof v, sizeof v);
      out[i] = v;
    } else {
      std::memcpy(&out[i], source.data() + i * sizeof(double), sizeof(double));
    }
  }
  return out;
}

}  // namespace fathom::checkpoint
