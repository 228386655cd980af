// Bytes as text, and whether they are UTF-8: well-formed as Unicode 15, table 3-7 says, so overlong
// forms, surrogates and values over U+10FFFF are not.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace fathom {

[[nodiscard]] inline std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Bytes of the character at `at`, 1 to 4; 0 if there is none that is well-formed.
[[nodiscard]] size_t utf8_length(std::string_view text, size_t at);

// Position of the first byte that is not of a well-formed character, or npos.
[[nodiscard]] size_t find_invalid_utf8(std::string_view text);

}  // namespace fathom
