// n-gram counts of one line, shared by BLEU and chrF. Keys are views into the line, which must
// outlive the counts: no n-gram is copied.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

namespace fathom::score {

using NgramCounts = std::unordered_map<std::u32string_view, int64_t>;

// n-grams of words; `line` has single spaces between words and none at its ends.
[[nodiscard]] NgramCounts count_word_ngrams(std::u32string_view line, int order);

// n-grams of code points, spaces included.
[[nodiscard]] NgramCounts count_char_ngrams(std::u32string_view line, int order);

// Sum of all counts.
[[nodiscard]] int64_t total(const NgramCounts& counts);

// Sum over n-grams of the smaller of both counts.
[[nodiscard]] int64_t overlap(const NgramCounts& a, const NgramCounts& b);

}  // namespace fathom::score
