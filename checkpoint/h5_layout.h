// state.h5 before it is written. HDF5 says where each array's elements go and makes the metadata
// around them; the elements stay where they are, and our own code writes the file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "checkpoint/archive.h"

namespace fathom::checkpoint {

struct FilePiece {
  std::span<const std::byte> bytes;
  int64_t array = -1;  // index of the array whose elements these are; -1: metadata
};

// Plain contiguous little-endian data sets, one per array, groups at each '/'. The same arrays give
// the same bytes.
class StateLayout {
 public:
  // The arrays' memory must outlive this object. IoError: HDF5 failed, or memory ran out.
  explicit StateLayout(std::span<const ArrayView> arrays);
  StateLayout(const StateLayout&) = delete;
  StateLayout& operator=(const StateLayout&) = delete;

  // The whole file from its beginning to its end. An array without elements has no piece.
  [[nodiscard]] const std::vector<FilePiece>& pieces() const { return pieces_; }
  [[nodiscard]] int64_t bytes() const { return bytes_; }

 private:
  std::vector<std::byte> metadata_;  // all of it, one piece after the other
  std::vector<FilePiece> pieces_;
  int64_t bytes_ = 0;
};

}  // namespace fathom::checkpoint
