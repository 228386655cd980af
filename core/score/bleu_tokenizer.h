// How BLEU splits a line into words. 13a is mteval-v13a's (WMT's and sacreBLEU's default), intl is
// mteval-v14's by Unicode categories, char one word per code point, none splits at white space.
#pragma once

#include <string>
#include <string_view>

namespace fathom::score {

enum class BleuTokenizer { k13a, kIntl, kChar, kNone };

// The words of `line` with single spaces between; `line` comes without white space at its end.
[[nodiscard]] std::u32string tokenize(BleuTokenizer tokenizer, const std::u32string& line);

// As in a signature: 13a, intl, char, none.
[[nodiscard]] const char* to_string(BleuTokenizer tokenizer);

// The inverse; throws InvalidArgument naming what is allowed.
[[nodiscard]] BleuTokenizer parse_bleu_tokenizer(std::string_view name);

}  // namespace fathom::score
