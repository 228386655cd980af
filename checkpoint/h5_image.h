// state.h5 as bytes in memory. HDF5 never touches the disk: a failed write inside the library can
// bring the process down later, so it builds and parses images and our own code reads and writes
// the files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/archive.h"

namespace fathom::checkpoint {

// Plain contiguous little-endian data sets, one per array, groups at each '/'. The same arrays give
// the same bytes. The bytes are the driver's own memory, so a save holds the state twice, not three
// times.
class H5Image {
 public:
  explicit H5Image(std::span<const ArrayView> arrays);  // copies them. IoError.
  ~H5Image();
  H5Image(const H5Image&) = delete;
  H5Image& operator=(const H5Image&) = delete;
  [[nodiscard]] std::span<const std::byte> bytes() const { return bytes_; }

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
  std::span<const std::byte> bytes_;  // of the file that impl_ holds open
};

// Where each expected array's elements begin in the image, in the order given. CheckpointError
// unless the file holds exactly these arrays as plain contiguous data sets: no link but hard ones,
// no filter, external storage, virtual layout, attribute or committed type. Allocates nothing that
// the file asks for. `where` names the checkpoint in messages.
[[nodiscard]] std::vector<int64_t> locate_arrays(std::span<const std::byte> image,
                                                 std::span<const ArrayInfo> expected,
                                                 const std::string& where);

}  // namespace fathom::checkpoint
