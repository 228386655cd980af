// A checkpoint that has been read and checked: names, sizes, the file's hash, the HDF5 structure,
// then the hash of every array. What open() returns is complete, finite and what was saved.
//
// The file's hash is checked before HDF5 parses it, so damage never reaches the library. Hashes do
// not stop a forger: check an untrusted checkpoint with verify() of verify.h first, which reads it
// in a child process.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "checkpoint/files.h"
#include "checkpoint/manifest.h"

namespace fathom::checkpoint {

class Checkpoint {
 public:
  // `directory` holds manifest.json, state.h5, perhaps validation.json, and nothing else that is
  // not hidden. If it is called step-*, that must be the manifest's step. Takes as much memory as
  // state.h5 has bytes. CheckpointError.
  [[nodiscard]] static Checkpoint open(const std::filesystem::path& directory);

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  [[nodiscard]] const Manifest& manifest() const { return manifest_; }

  // Null if there is no array of that name.
  [[nodiscard]] const ArrayInfo* find(std::string_view name) const;

  // The elements as stored, row-major and perhaps unaligned; `info` is one of manifest().arrays.
  // Valid as long as the checkpoint.
  [[nodiscard]] std::span<const std::byte> bytes(const ArrayInfo& info) const;

  // A copy of an array's elements, f32 widened. `info` as above.
  [[nodiscard]] std::vector<double> values(const ArrayInfo& info) const;

 private:
  Checkpoint() = default;

  std::filesystem::path path_;
  Manifest manifest_;
  Bytes image_;
  std::vector<int64_t> offsets_;
  std::unordered_map<std::string, size_t> index_;
};

// The manifest alone, checked against its own hash. CheckpointError.
[[nodiscard]] Manifest read_manifest(const std::filesystem::path& directory);

// Index of the first element that is NaN or infinite, -1 if there is none.
[[nodiscard]] int64_t first_non_finite(std::span<const std::byte> bytes, ElementType type);

}  // namespace fathom::checkpoint
