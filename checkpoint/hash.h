// XXH3-128 of a range of bytes as 32 lower-case hexadecimal digits, most significant first: what
// `xxhsum -H2` prints. It finds damage, not malice.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace fathom::checkpoint {

[[nodiscard]] std::string xxh3_128(std::span<const std::byte> bytes);

}  // namespace fathom::checkpoint
