// The Unicode functions that scoring needs: code points, white space, lower case, three categories.
// They behave as Python's `str`, because sacreBLEU's numbers are defined by it. ICU stays in the
// .cpp. A tokenised line is code points with single spaces between words and none at the ends.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace fathom::score {

// Code points of a UTF-8 text; each ill-formed sequence becomes U+FFFD, so a model that emits half
// a character still gets a score.
[[nodiscard]] std::u32string decode_utf8(std::string_view text);

// As `str.lower()`: full mapping, language-independent (a final capital sigma becomes U+03C2).
[[nodiscard]] std::u32string lower_case(const std::u32string& text);

// As `str.isspace()`, thus what `str.split()` separates at.
[[nodiscard]] bool is_space(char32_t c);

[[nodiscard]] bool is_number(char32_t c);       // category N
[[nodiscard]] bool is_punctuation(char32_t c);  // category P
[[nodiscard]] bool is_symbol(char32_t c);       // category S

// As `str.rstrip()`.
void strip_right(std::u32string& text);

// As `str.split()`. The views point into `text`.
[[nodiscard]] std::vector<std::u32string_view> split_words(std::u32string_view text);

// As `' '.join(words)`.
[[nodiscard]] std::u32string join_words(const std::vector<std::u32string_view>& words);

}  // namespace fathom::score
