// Bytes as text, and whether they are UTF-8: well-formed as Unicode 15, table 3-7 says, so overlong
// forms, surrogates and values over U+10FFFF are not. Printable is what is not a control character,
// U+0000 to U+001F and U+007F to U+009F.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace fathom {

[[nodiscard]] inline std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Bytes of the character at `at`, 1 to 4; 0 if there is none that is well-formed.
[[nodiscard]] size_t utf8_length(std::string_view text, size_t at);

// Position of the first byte that is not part of a well-formed character, or npos.
[[nodiscard]] size_t find_invalid_utf8(std::string_view text);

// Position of the first byte that is neither of a printable character nor in `also`, or npos.
[[nodiscard]] size_t find_unprintable(std::string_view text, std::string_view also = "");

// For a message: at most 60 bytes, with `?` for each character that is not printable.
[[nodiscard]] std::string printable(std::string_view text);

}  // namespace fathom
