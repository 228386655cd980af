#include "checkpoint/hash.h"

#include <xxhash.h>

namespace fathom::checkpoint {

std::string xxh3_128(std::span<const std::byte> bytes) {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits(bytes.data(), bytes.size()));
  std::string text;
  for (const unsigned char digit : canonical.digest) {
    text += "0123456789abcdef"[digit >> 4];
    text += "0123456789abcdef"[digit & 15];
  }
  return text;
}

}  // namespace fathom::checkpoint
