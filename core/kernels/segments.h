// Where the sentences of a packed `(T, C)` matrix lie. There is no padding: attention learns from
// here which rows belong together. Segment i owns the rows begin[i] .. begin[i] + length[i] - 1.
//
// In a packed batch `begin` is the running sum of `length`. In a key/value cache segments have room
// between them, so use `begin` and never assume the sum; `total` is then the number of rows in all.
#pragma once

#include <cstdint>

namespace fathom::kernels {

struct Segments {
  const int32_t* begin = nullptr;   // (count)  first row, in the device's memory
  const int32_t* length = nullptr;  // (count)  rows in use
  int64_t count = 0;
  int64_t total = 0;    // rows of the matrix, T
  int64_t longest = 0;  // of the lengths, or more: what a launch must provide for
};

}  // namespace fathom::kernels
