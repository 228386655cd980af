// A run of consecutive elements of a flat buffer.
#pragma once

#include <cstdint>

namespace fathom {

struct Slice {
  int64_t offset = 0;
  int64_t count = 0;
  [[nodiscard]] int64_t end() const { return offset + count; }
  friend bool operator==(const Slice&, const Slice&) = default;
};

}  // namespace fathom
