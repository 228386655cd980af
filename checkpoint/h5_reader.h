// Where the arrays are in a state.h5 that has been read into memory: HDF5 parses the image, our own
// code has read the file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/manifest.h"

namespace fathom::checkpoint {

// Where each expected array's elements begin in the image, in the order given. CheckpointError
// unless the file holds exactly these arrays as plain contiguous data sets: no link but hard ones,
// no filter, external storage, virtual layout, attribute or committed type. Allocates nothing that
// the file asks for. `where` names the checkpoint in messages.
[[nodiscard]] std::vector<int64_t> locate_arrays(std::span<const std::byte> image,
                                                 std::span<const ArrayInfo> expected,
                                                 const std::string& where);

}  // namespace fathom::checkpoint
