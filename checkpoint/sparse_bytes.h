// A long run of bytes of which few are ever written. Those never written are zero and take no
// memory.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>

namespace fathom::checkpoint {

class SparseBytes {
 public:
  void write(uint64_t offset, std::span<const std::byte> bytes);
  void read(uint64_t offset, std::span<std::byte> bytes) const;

 private:
  static constexpr size_t kPageBytes = 4096;
  using Page = std::array<std::byte, kPageBytes>;

  std::map<uint64_t, Page> pages_;  // by offset / kPageBytes
};

}  // namespace fathom::checkpoint
