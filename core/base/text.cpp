#include "core/base/text.h"

#include <algorithm>
#include <cstdint>

#include <unicode/utf8.h>

namespace fathom {
namespace {

bool is_control(std::string_view text, size_t at) {
  const auto c = uint8_t(text[at]);
  const bool is_c1 = c == 0xC2 && at + 1 < text.size() && uint8_t(text[at + 1]) < 0xA0;
  return c < 0x20 || c == 0x7F || is_c1;
}

}  // namespace

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

size_t find_unprintable(std::string_view text, std::string_view also) {
  for (size_t at = 0; at < text.size();) {
    const size_t length = utf8_length(text, at);
    const bool is_allowed = !is_control(text, at) || also.find(text[at]) != also.npos;
    if (length == 0 || !is_allowed) return at;
    at += length;
  }
  return std::string_view::npos;
}

std::string printable(std::string_view text) {
  constexpr size_t kMost = 60;
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const bool is_broken = utf8_length(text, at) == 0 || is_control(text, at);
    const size_t length = std::max<size_t>(utf8_length(text, at), 1);
    if (out.size() + length > kMost) return out + "...";
    out += is_broken ? std::string_view("?") : text.substr(at, length);
    at += length;
  }
  return out;
}

}  // namespace fathom
