#include "checkpoint/h5_handle.h"

#include "core/base/error.h"

namespace fathom::checkpoint {

void fail_h5(std::string_view doing) {
  std::string innermost;
  // Upward: the first entry is where the error arose.
  H5Ewalk2(
      H5E_DEFAULT, H5E_WALK_UPWARD,
      [](unsigned depth, const H5E_error2_t* entry, void* text) -> herr_t {
        if (depth == 0 && entry->desc) *static_cast<std::string*>(text) = entry->desc;
        return 0;
      },
      &innermost);
  throw H5Error(join(doing, ": ", innermost.empty() ? "HDF5 gave no reason" : innermost));
}

}  // namespace fathom::checkpoint
