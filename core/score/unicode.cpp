#include "core/score/unicode.h"

#include <cstdint>

#include <unicode/uchar.h>
#include <unicode/ustring.h>
#include <unicode/utf16.h>
#include <unicode/utf8.h>

#include "core/base/error.h"

namespace fathom::score {
namespace {

bool has_category(char32_t c, uint32_t mask) { return (U_GET_GC_MASK(UChar32(c)) & mask) != 0; }

// Calls use(offset, code point) for each code point; a negative one marks an ill-formed sequence.
// Stops when `use` returns false.
template <class Use>
void for_each_code_point(std::string_view text, Use use) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(text.data());
  for (size_t i = 0; i < text.size();) {
    const size_t begin = i;
    UChar32 c = 0;
    U8_NEXT(bytes, i, text.size(), c);
    if (!use(begin, c)) return;
  }
}

std::u16string to_utf16(const std::u32string& text) {
  std::u16string result;
  result.reserve(text.size());
  for (const char32_t c : text) {
    const auto value = uint32_t(c);
    if (value <= 0xFFFF) {
      result.push_back(char16_t(value));
    } else {
      result.push_back(char16_t(U16_LEAD(value)));
      result.push_back(char16_t(U16_TRAIL(value)));
    }
  }
  return result;
}

std::u32string to_utf32(std::u16string_view text) {
  std::u32string result;
  result.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    UChar32 c = 0;
    U16_NEXT(text.data(), i, text.size(), c);
    result.push_back(char32_t(c));
  }
  return result;
}

}  // namespace

std::u32string decode_utf8(std::string_view text) {
  std::u32string result;
  result.reserve(text.size());
  for_each_code_point(text, [&](size_t, UChar32 c) {
    result.push_back(c < 0 ? U'\uFFFD' : char32_t(c));
    return true;
  });
  return result;
}

std::u32string lower_case(const std::u32string& text) {
  const std::u16string source = to_utf16(text);
  // A code unit grows to three at most (U+0130 to two, for one).
  std::u16string target(3 * source.size() + 1, u'\0');
  UErrorCode status = U_ZERO_ERROR;
  const int32_t length = u_strToLower(target.data(), int32_t(target.size()), source.data(),
                                      int32_t(source.size()), "", &status);
  require(U_SUCCESS(status), "lower_case: ICU failed on a line of ", text.size(),
          " characters: ", u_errorName(status));
  return to_utf32(std::u16string_view(target).substr(0, size_t(length)));
}

bool is_space(char32_t c) {
  return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 ||
         c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F ||
         c == 0x205F || c == 0x3000;
}

bool is_number(char32_t c) { return has_category(c, U_GC_N_MASK); }
bool is_punctuation(char32_t c) { return has_category(c, U_GC_P_MASK); }
bool is_symbol(char32_t c) { return has_category(c, U_GC_S_MASK); }

void strip_right(std::u32string& text) {
  while (!text.empty() && is_space(text.back())) text.pop_back();
}

std::vector<std::u32string_view> split_words(std::u32string_view text) {
  std::vector<std::u32string_view> words;
  for (size_t i = 0; i < text.size();) {
    const size_t begin = i;
    while (i < text.size() && !is_space(text[i])) ++i;
    if (i > begin) words.push_back(text.substr(begin, i - begin));
    while (i < text.size() && is_space(text[i])) ++i;
  }
  return words;
}

std::u32string join_words(const std::vector<std::u32string_view>& words) {
  std::u32string result;
  for (const std::u32string_view word : words) {
    if (!result.empty()) result.push_back(U' ');
    result.append(word);
  }
  return result;
}

}  // namespace fathom::score
