#include "checkpoint/sparse_bytes.h"

#include <algorithm>

namespace fathom::checkpoint {

void SparseBytes::write(uint64_t offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const size_t begin = offset % kPageBytes, count = std::min(bytes.size(), kPageBytes - begin);
    Page& page = pages_[offset / kPageBytes];  // zeros if it is new
    std::copy_n(bytes.begin(), count, page.begin() + ptrdiff_t(begin));
    bytes = bytes.subspan(count);
    offset += count;
  }
}

void SparseBytes::read(uint64_t offset, std::span<std::byte> bytes) const {
  while (!bytes.empty()) {
    const size_t begin = offset % kPageBytes, count = std::min(bytes.size(), kPageBytes - begin);
    const auto found = pages_.find(offset / kPageBytes);
    if (found == pages_.end())
      std::fill_n(bytes.begin(), count, std::byte{0});
    else
      std::copy_n(found->second.begin() + ptrdiff_t(begin), count, bytes.begin());
    bytes = bytes.subspan(count);
    offset += count;
  }
}

}  // namespace fathom::checkpoint
