#include "core/base/text.h"

#include <cstdint>

#include <unicode/utf8.h>

namespace fathom {

size_t utf8_length(std::string_view text, size_t at) {
  if (at >= text.size()) return 0;
  const auto* bytes = reinterpret_cast<const uint8_t*>(text.data());
  size_t end = at;
  UChar32 c = 0;
  U8_NEXT(bytes, end, text.size(), c);
  return c < 0 ? 0 : end - at;
}

size_t find_invalid_utf8(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const size_t length = utf8_length(text, at);
    if (length == 0) return at;
    at += length;
  }
  return std::string_view::npos;
}

}  // namespace fathom
